"""Repairs of small configurations that are inconsistent: restore one default value, or fill one that the library leaves open.

No rule knows for all types which value is at fault, so repairs are tried one by one. Values that the error names come before the others,
and whole parts last.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from rankfall.models.families.divided import ways_to_divide
from rankfall.models.families.small import (
    COMPILED,
    INNER,
    LAYERS,
    PATCH,
    PICTURE,
    WIDTH,
    Shrunken,
    shrunk,
    small_values,
)

MOST = 35  # attempts for a type
FEW, FEWER = (
    100_000_000,
    10_000_000,
)  # most weights of a model with restored default values, and of a model with divided widths
OPEN = 2**20  # stands for a missing value in the rules, which bound it
KINDS_OF_LAYERS = {"layer_types": "full_attention", "mlp_layer_types": "sparse", "layers_block_type": "attention"}
Way = tuple[str, ...]


def mended_values(kind: str, depth: int, error: str) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield repaired values for the configuration class of a type, and the most weights that such a model may have."""
    from transformers import CONFIG_MAPPING

    cls = CONFIG_MAPPING[kind]
    yield from islice(ways_to_mend(cls, small_values(cls, depth), depth, error), MOST)


def ways_to_mend(cls: Any, values: dict[str, Any], depth: int, error: str) -> Iterator[tuple[dict[str, Any], int]]:
    ways = list(leaves(values))
    named = [way for way in ways if re.search(rf"\b{re.escape(way[-1])}\b", error)]
    if len(named) > 1:
        yield drop_ways(values, named), FEW
    filled = dict(open_values(cls, depth))
    if filled:
        yield {**filled, **values}, FEW
    masked = small_values(cls, depth, of_masks)
    if masked != values:
        yield masked, FEW
    wider = four_times(values)
    if wider != values:
        yield wider, FEW
    for divided in ways_to_divide(cls, depth):
        yield divided, FEWER
    for way in (*named, *(one for one in ways if one not in named)):
        yield drop_ways(values, [way]), FEW
    for key, value in filled.items():
        yield {key: value, **values}, FEW
    for key, value in values.items():
        if isinstance(value, dict):
            yield {name: one for name, one in values.items() if name != key}, FEW


def of_masks(key: str, value: Any, sizes: Shrunken, plain: dict[str, Any]) -> Any:
    """Shrink a value as `shrunk` does, but keep the sizes between an image encoder and its mask decoder consistent."""
    side = PICTURE // PATCH
    if key == "backbone_feature_sizes" and isinstance(value, list):
        return [[side << step, side << step] for step in reversed(range(len(value)))]
    mended = {"output_channels": WIDTH, "num_pos_feats": WIDTH // 2, "image_embedding_size": side}
    return mended[key] if key in mended and isinstance(value, int) else shrunk(key, value, sizes, plain)


def four_times(values: dict[str, Any]) -> dict[str, Any]:
    """Set inner widths to four times the width, as in most released models. Four patches joined to one have this width too."""
    made: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict) and "model_type" in value:
            made[key] = four_times(value)
        else:
            made[key] = 4 * WIDTH if value == INNER and key == "intermediate_size" else value
    return made


def leaves(values: dict[str, Any], above: Way = ()) -> Iterator[Way]:
    """Yield the paths to all values, through the parts of a configuration."""
    for key, value in values.items():
        if isinstance(value, dict) and "model_type" in value:
            yield from leaves(value, (*above, key))
        elif key != "model_type":
            yield (*above, key)


def drop_ways(values: dict[str, Any], ways: list[Way]) -> dict[str, Any]:
    made = copy.deepcopy(values)
    for way in ways:
        inside = made
        for key in way[:-1]:
            inside = inside[key]
        inside.pop(way[-1], None)
    return made


def open_values(cls: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield values for what the library leaves open: sizes by the rule for their name, and the usual kind of layer."""
    for key, value in cls().to_dict().items():
        if value is not None or key.endswith("_id"):
            continue
        if key in KINDS_OF_LAYERS:
            yield key, [KINDS_OF_LAYERS[key]] * depth
        rule = next((rule for pattern, rule in COMPILED if pattern.search(key)), None)
        if rule is not None and (found := rule(OPEN)) != OPEN:
            yield key, min(found, LAYERS) if "layer" in key else found
