"""Straight lines through the numbers of a claim's experiment."""

import math
from collections.abc import Iterable

import numpy as np

from rankfall import DataFrame, RankfallError


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


def slopes(rows: DataFrame, log: bool = False) -> list[float]:
    """Return the slope of each seed's values over x. With `log`, of logarithms over logarithms."""
    found = []
    for _, of_seed in rows[rows.value.notna()].groupby("seed"):
        x, y = of_seed.x.astype(float), of_seed.value.astype(float)
        found.append(slope(np.log(x), np.log(y)) if log else slope(x, y))
    return found
