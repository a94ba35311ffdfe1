"""What several experiments and rules share: parts of networks, names of masks in the lines of evidence, and lines through points."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from rankfall import RankfallError

XAVIER: dict[str, Any] = {"name": "deepnorm", "beta": 1.0}  # Xavier's initialisation if nothing is scaled
PRE_NORM: dict[str, Any] = {"residual": "add", "norm": "layer", "norm_placement": "pre"}
ALL_OR_EARLIER: dict[str, Any] = {"every token": "none", "earlier tokens": "causal"}
MASKS: dict[str, Any] = {**ALL_OR_EARLIER, "next neighbours": {"name": "local", "window": 1}}


def slope(x: Iterable[float], y: Iterable[float]) -> float:
    """Return the slope of the least-squares line."""
    return line(x, y)[0]


def line(x: Iterable[float], y: Iterable[float]) -> tuple[float, float]:
    """Return the slope of the least-squares line, and its value at x = 0."""
    points = [(a, b) for a, b in zip(x, y, strict=True) if math.isfinite(a) and math.isfinite(b)]
    if len({a for a, _ in points}) < 2:
        raise RankfallError("a line needs two numbers at different places")
    found = np.polyfit([a for a, _ in points], [b for _, b in points], 1)
    return float(found[0]), float(found[1])
