"""Bounds of options: those that a component declares in LIMITS, or else defaults.

An integer, or a list of integers, is a size or a count and not negative. Options named `seeds` or `width` (see LEAST) of this package's
measures and figures are at least 1. A list with default entries must have entries, and for measures each entry once: without seeds there is
nothing to compute, and a job would only fail after hours, or draw nothing. In other packages `width` may be in inches. A default value is
always possible, whatever bound is assumed.
"""

from collections.abc import Container, Mapping
from typing import Any, Literal, get_args, get_origin

from rankfall.descriptions import Description
from rankfall.run.config.problems import problem, show_value

LEAST = dict.fromkeys(
    ("batch", "columns", "depth", "depths", "directions", "draws", "heads", "hidden", "items", "length", "lengths", "most", "pairs",
     "repeats", "samples", "seeds", "steps", "streams", "symbols", "tested", "tokens", "vocabulary", "width", "widths"),
    1,
) | {"lr": 0, "rate": 0}  # fmt: skip
BESIDE = {"measure": ("measure", "cells"), "figure": ("figure",)}  # keys of entries that are not options


def limits_of(kind: str, found: Description, name: str) -> tuple[Any, Any]:
    """Return the (lowest, highest) value of an option, with None for no bound."""
    declared = found.facts.get("LIMITS", {}).get(name)
    if declared is not None:
        return declared[0], declared[1]
    option = found.options[name]
    least = LEAST.get(name) if kind in BESIDE and is_own(found) else None
    types = leaf_types(option.type)
    if least is None and int in types and float not in types:
        least = 0
    default = option.default if isinstance(option.default, list | tuple) else [option.default]
    if least is not None and any(type(one) in (int, float) and one < least for one in default):
        return None, None
    return least, None


def explain_limits(found: Description, name: str) -> str:
    """Return a hint on how to allow more values, for a component whose author declared no limits."""
    if is_own(found) or name in found.facts.get("LIMITS", {}):
        return ""
    return f"if others make sense, say LIMITS = {{{name!r}: (None, None)}} in {found.location.file}"


def check_entries(kind: str, found: Description, name: str, value: Any, path: str) -> None:
    """Check that a list with default entries is not empty, and that a measure measures nothing twice, which would give duplicate rows."""
    if not isinstance(value, list) or kind not in BESIDE or not is_own(found):
        return
    if not value and found.options[name].default:
        raise problem(path, "[] has no entries", hint="name some, or leave the key out for its default")
    twice = next((item for place, item in enumerate(value) if item in value[:place]), None)
    if twice is not None and kind == "measure":
        raise problem(path, f"{show_value(twice)} is there twice", hint="take one out")


def is_own(found: Description) -> bool:
    """Return whether a component belongs to this package."""
    return found.location.shipped


def leaf_types(hint: Any) -> set[Any]:
    """Return the types of which a type is composed."""
    inner = () if get_origin(hint) is Literal else get_args(hint)
    return set[Any]().union(*map(leaf_types, inner)) if inner else {hint}


def check_heads(options: Mapping[str, Any], written: Container[str], path: str) -> None:
    """Check that the heads of a measure's own networks divide their width."""
    width, heads = options.get("width"), options.get("heads")
    if type(width) is not int or "head_width" in options:
        return
    for count in heads if isinstance(heads, list) else [heads]:
        if type(count) is int and width % count:
            divisors = [str(one) for one in range(1, width + 1) if width % one == 0]
            if "heads" in written:
                what = f"{count} heads do not divide the width {width}"
                raise problem(f"{path}.heads", what, allowed=divisors, hint="or choose another width")
            raise problem(f"{path}.width", f"{width} is not divisible by its {count} heads", hint="choose `heads` too")
