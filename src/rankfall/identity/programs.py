"""Linear programs over the distributions that give the same output as one row of attention weights a:

    x >= 0,   x^T T = a^T T,   sum x = sum a.

The interval of values that an entry can take describes what the output determines of this weight; each end is attained by a
distribution. The farthest distribution is sought by a sequence of programs: the distance ||x - a||_1 is convex, so the program for its
slope at x leads to a vertex that is at least as far.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
SUPPORT = 1e-12  # smaller entries of a solution are zeros of the vertex
STEPS = 6


@dataclass(frozen=True)
class Interval:
    """Range of an entry, and the distributions that attain its ends."""

    low: float
    high: float
    attained: tuple[Array, Array]


def interval(row: Array, basis: Array, entry: int) -> Interval | None:
    """Return the range of one entry of a row (n,), or None if the solver stops without a solution.

    `basis` (n, r): orthonormal columns that span the columns of [T, 1].
    """
    if is_determined(basis):
        return Interval(float(row[entry]), float(row[entry]), (row, row))
    slope = np.zeros_like(row)
    slope[entry] = 1.0
    low, high = best(row, basis, -slope), best(row, basis, slope)
    if low is None or high is None:
        return None
    return Interval(float(low[entry]), float(high[entry]), (low, high))


def farthest(row: Array, basis: Array) -> Array | None:
    """Return a distribution (n,) as far from the row as the ascent reaches, or None if the solver stops without a solution.

    The ascent starts away from the entries that hold most of the weight.
    """
    if is_determined(basis):
        return row
    order = np.argsort(-row)
    heavy = order[: 1 + int(np.searchsorted(np.cumsum(row[order]), 0.5 * row.sum()))]
    slope = np.ones_like(row)
    slope[heavy] = -1.0
    found, reached = row, 0.0
    for _ in range(STEPS):
        vertex = best(row, basis, slope)
        if vertex is None:
            return None
        gone = float(np.abs(vertex - row).sum())
        if gone <= reached * (1 + 1e-9):
            break
        found, reached = vertex, gone
        slope = np.where(vertex >= row, 1.0, -1.0)
    return found


def is_determined(basis: Array) -> bool:
    """Check whether there are at least as many conditions as entries, so that only the row itself meets them."""
    return basis.shape[1] >= basis.shape[0]


def best(row: Array, basis: Array, slope: Array) -> Array | None:
    """Return the distribution with the largest slope . x, by HiGHS, with an exact solve on its support. None if the solver fails."""
    from scipy.optimize import linprog

    wanted = basis.T @ row
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    solved = linprog(-slope, A_eq=basis.T, b_eq=wanted, bounds=(0, None), method="highs", options=tight)
    if solved.x is None or solved.status != 0:
        return None
    x = np.where(solved.x > SUPPORT, solved.x, 0.0)
    inside = x > 0
    x[inside] += np.linalg.lstsq(basis[inside].T, wanted - basis.T @ x, rcond=None)[0]
    return np.maximum(x, 0.0)  # values below zero are rounding; the reported errors include the effect of the cut
