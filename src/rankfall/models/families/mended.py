"""Repairs of small configurations that are inconsistent: restore one default value, or fill one that the library leaves open.

No rule knows for all types which value is at fault, so repairs are tried one by one. Values that the error names come before the others,
and whole parts last.

`small.py` sets each width by its name. If a model joins, adds or reshapes widths of several names, these may not fit together. One repair
therefore divides all widths of the default configuration alike: the number of heads stays, and the heads become narrow.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

from rankfall.models.families.small import (
    COMPILED,
    INNER,
    KEPT,
    LAYERS,
    PATCH,
    PICTURE,
    WIDTH,
    Shrunken,
    by_depth,
    shrunk,
    small_values,
)

MOST = 35  # attempts for a type
FEW = 100_000_000  # most weights of a model with restored default values
FEWER = 10_000_000  # most weights of a model with divided widths
OPEN = 2**20  # stands for a missing value in the rules, which bound it
KINDS_OF_LAYERS = {"layer_types": "full_attention", "mlp_layer_types": "sparse", "layers_block_type": "attention"}
Way = tuple[str, ...]  # path of keys to a value


def mended_values(kind: str, depth: int, error: str) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield repaired values for the configuration class of a type, and the most weights that such a model may have."""
    return islice(ways_to_mend(kind, depth, error), MOST)


def ways_to_mend(kind: str, depth: int, error: str) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield all repairs, the likeliest first."""
    from transformers import CONFIG_MAPPING

    cls = CONFIG_MAPPING[kind]
    values = small_values(cls, depth)
    ways = list(leaves(values))
    named = [way for way in ways if re.search(rf"\b{re.escape(way[-1])}\b", error)]
    if len(named) > 1:
        yield drop_ways(values, named), FEW
    filled = dict(open_values(cls, depth))
    if filled:
        yield {**filled, **values}, FEW
    masked = small_values(cls, depth, shrink_masks)
    if masked != values:
        yield masked, FEW
    wider = widen_inner(values)
    if wider != values:
        yield wider, FEW
    for pictures, divisors in ((True, DIVISORS[:2]), (False, DIVISORS)):  # with and without smaller images
        for divisor in divisors:
            yield divided_values(cls, depth, divisor, pictures), FEWER
    for way in (*named, *(other for other in ways if other not in named)):
        yield drop_ways(values, [way]), FEW
    for key, value in filled.items():
        yield {key: value, **values}, FEW
    for key, value in values.items():
        if isinstance(value, dict):
            yield {name: part for name, part in values.items() if name != key}, FEW


def shrink_masks(key: str, value: Any, sizes: Shrunken, plain: dict[str, Any]) -> Any:
    """Shrink a value as `shrunk` does, but keep the sizes between an image encoder and its mask decoder consistent."""
    side = PICTURE // PATCH
    if key == "backbone_feature_sizes" and isinstance(value, list):
        return [[side << step, side << step] for step in reversed(range(len(value)))]
    mended = {"output_channels": WIDTH, "num_pos_feats": WIDTH // 2, "image_embedding_size": side}
    return mended[key] if key in mended and isinstance(value, int) else shrunk(key, value, sizes, plain)


def widen_inner(values: dict[str, Any]) -> dict[str, Any]:
    """Set inner widths to four times the width, as in most released models. Four patches joined to one have this width too."""
    widened: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict) and "model_type" in value:
            widened[key] = widen_inner(value)
        else:
            widened[key] = 4 * WIDTH if value == INNER and key == "intermediate_size" else value
    return widened


def leaves(values: dict[str, Any], above: Way = ()) -> Iterator[Way]:
    """Yield the paths to all values, through the parts of a configuration."""
    for key, value in values.items():
        if isinstance(value, dict) and "model_type" in value:
            yield from leaves(value, (*above, key))
        elif key != "model_type":
            yield (*above, key)


def drop_ways(values: dict[str, Any], ways: list[Way]) -> dict[str, Any]:
    """Return the values without those at these paths, which then have the library's default."""
    reduced = copy.deepcopy(values)
    for way in ways:
        inside = reduced
        for key in way[:-1]:
            inside = inside[key]
        inside.pop(way[-1], None)
    return reduced


def open_values(cls: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield values for what the library leaves open: sizes by the rule for their name, and the usual kind of layer."""
    for key, value in cls().to_dict().items():
        if value is not None or key.endswith("_id"):
            continue
        if key in KINDS_OF_LAYERS:
            yield key, [KINDS_OF_LAYERS[key]] * depth
        rule = next((rule for pattern, rule in COMPILED if pattern.search(key)), None)
        if rule is not None and (size := rule(OPEN)) != OPEN:
            yield key, min(size, LAYERS) if "layer" in key else size


DIVISORS = (8, 4, 2)
LEAST = 4  # smallest quotient
WIDTHS = re.compile(
    r"hidden|width|channels|embed|embd|embeds|_dims?$|^dims?$|d_model|d_ff|d_inner|d_kv|inner|intermediate|ffn|filters|mlp_dim|"
    r"feed_?forward|hidden_sizes?$|head_(dim|size)|key_dim|value_dim|qkv_|axial_pos|lora_rank|conv_dim|projection|_features?_dims?"
)
NOT_WIDTHS = re.compile(
    r"(^|_)num_(?!filters)|(^|_)n_(?!embd|inner)|vocab|image|img|crop|patch_size|kernel|stride|window|chunk|max_|layer|depth|groups?$|"
    r"merge|temporal|codebook|position|mel|sampling|_ids?$|index|ratio|dropout|act"
)
COLOURS = re.compile(r"^(num|in)_(channels|chans)$")
PICTURES = re.compile(r"(image|img|crop|input)_size$|resolution$|window|patch_size$|stride|kernel")


def divided_values(cls: Any, depth: int, divisor: int, pictures: bool) -> dict[str, Any]:
    """Return the values for a configuration class. `pictures`: image sizes shrink too."""
    return small_values(cls, depth, partial(new_value, divisor=divisor, pictures=pictures))


def new_value(key: str, value: Any, sizes: Shrunken, plain: dict[str, Any], *, divisor: int, pictures: bool) -> Any:
    """Return the new value of one key, or None if it stays."""
    if is_width(key) and not (isinstance(value, int) and COLOURS.search(key)):
        return divide(value, divisor)
    if PICTURES.search(key):
        return shrunk(key, value, sizes, plain) if pictures else None
    if isinstance(value, int) and not isinstance(value, bool):
        rule = next((rule for pattern, rule in COMPILED if pattern.search(key)), None)
        cut = rule is by_depth or re.search(r"vocab|token|_id$|index$|experts|max_", key)
        return shrunk(key, value, sizes, plain) if cut else None
    return shrunk(key, value, sizes, plain)


def is_width(key: str) -> bool:
    return bool(WIDTHS.search(key)) and not NOT_WIDTHS.search(key) and not KEPT.search(key)


def divide(value: Any, divisor: int) -> Any:
    """Divide integers, in nested lists too, if the quotient is an integer and not too small."""
    if isinstance(value, list | tuple):
        return type(value)(item if (new := divide(item, divisor)) is None else new for item in value)
    if isinstance(value, bool) or not isinstance(value, int) or value % divisor or value // divisor < LEAST:
        return None
    return value // divisor
