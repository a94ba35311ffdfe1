"""Share parts of networks, masks by their line of evidence, and least-squares lines between experiments and rules."""

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
    return fit_line(x, y)[0]


def fit_line(x: Iterable[float], y: Iterable[float]) -> tuple[float, float]:
    """Return the slope of the least-squares line, and its value at x = 0."""
    points = [(a, b) for a, b in zip(x, y, strict=True) if math.isfinite(a) and math.isfinite(b)]
    if len({a for a, _ in points}) < 2:
        raise RankfallError("a line needs two numbers at different places")
    coefficients = np.polyfit([a for a, _ in points], [b for _, b in points], 1)
    return float(coefficients[0]), float(coefficients[1])
