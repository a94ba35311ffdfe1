"""Small configurations by one divisor: all widths of the default configuration are divided alike, so that sums and products fit.

`small.py` sets each width by its name. If a model joins, adds or reshapes widths of several names, these may not fit together.
Here the number of heads stays, and the heads become narrow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from rankfall.models.families.small import COMPILED, KEPT, Shrunken, by_depth, shrunk, small_values

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
    return small_values(cls, depth, partial(one_value, divisor=divisor, pictures=pictures))


def ways_to_divide(cls: Any, depth: int) -> Iterator[dict[str, Any]]:
    for pictures in (True, False):
        for divisor in DIVISORS[:2]:
            yield divided_values(cls, depth, divisor, pictures)
    yield divided_values(cls, depth, DIVISORS[-1], False)


def one_value(key: str, value: Any, sizes: Shrunken, plain: dict[str, Any], *, divisor: int, pictures: bool) -> Any:
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
        return type(value)(one if (new := divide(one, divisor)) is None else new for one in value)
    if isinstance(value, bool) or not isinstance(value, int) or value % divisor or value // divisor < LEAST:
        return None
    return value // divisor
