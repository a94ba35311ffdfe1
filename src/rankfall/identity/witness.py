"""A second attention distribution with the same output: no entry is negative, rows keep their sums, A~ T = A T.

`find_farthest` moves each row along directions of LN([T, 1]) as far as entries stay above zero, and keeps the farthest of a few points.
It is fast and handles all rows. `farthest` comes nearer to the largest possible distance by linear programs, a row at a time.

A test decides whether weights can be the softmax of scores q k^T of width d_k (Bhardwaj et al. 2021).
log A equals S up to a constant per row, so log A and S with the mean of each row subtracted are equal, of rank d_k or less. Conversely,
if the centred log A has rank d_k or less, it is itself such a matrix of scores. (Without centring the bound is d_k + 1.) The test needs
every weight above zero, and an unmasked block of rows and columns that is larger than d_k + 1.

The linear programs are over the distributions that give the same output as one row of attention weights a:

    x >= 0,   x^T T = a^T T,   sum x = sum a.

The interval of values that an entry can take describes what the output determines of this weight; each end is attained by a
distribution. The farthest distribution is sought by a sequence of programs: the distance ||x - a||_1 is convex, so the program for its
slope at x leads to a vertex that is at least as far.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankfall.identity.nullspace import GroupedRows, column_space

INSIDE = 1 - 1e-12  # share of the way to the first zero


def find_farthest(rows: GroupedRows, extent: float = INSIDE) -> Tensor:
    """Return the farthest of four points, (B, H, G, R, n): less and more of the largest weight, and of every second weight.

    `extent` is the share of the way to the first zero; below 1 all positive entries stay positive.
    """
    basis = column_space(rows)  # (B, H, G, n, r + 1)
    weights = rows.weights
    largest = torch.nn.functional.one_hot(weights.argmax(-1), weights.shape[-1]).to(weights.dtype)
    second = (torch.arange(weights.shape[-1], device=weights.device) % 2).to(weights.dtype).expand_as(weights)
    best, farthest = weights, torch.zeros_like(weights[..., 0])
    for wish in (largest, second):
        free = _free(wish * rows.allowed[:, None], basis)
        for direction in (free, -free):
            moved = _walk(weights, direction, extent)
            gap = distance(moved, weights)
            better = gap > farthest
            best = torch.where(better.unsqueeze(-1), moved, best)
            farthest = torch.where(better, gap, farthest)
    return best


def distance(a: Tensor, b: Tensor) -> Tensor:
    """Return half the sum of absolute differences of rows (total variation).

    It is 0 for equal rows and 1 for distributions without a common token.
    """
    return 0.5 * (a - b).abs().sum(-1)


def output_error(rows: GroupedRows, other: Tensor) -> Tensor:
    """Return max |A~ T - A T| over max |A T| of each head, (B, H)."""
    before = rows.weights @ rows.values  # (B, H, G, R, r)
    change = (other - rows.weights) @ rows.values
    size = before.abs().amax((2, 3, 4))
    return change.abs().amax((2, 3, 4)) / size


def _free(wish: Tensor, basis: Tensor) -> Tensor:
    """Return the part of a wished change (B, H, G, R, n) that changes neither output nor sum; zero where only rounding is left."""
    free = wish
    for _ in range(2):
        free = free - (free @ basis) @ basis.mT
    size, whole = free.norm(dim=-1, keepdim=True), wish.norm(dim=-1, keepdim=True)
    return torch.where(size > 1e-10 * whole, free, torch.zeros_like(free))


def _walk(weights: Tensor, direction: Tensor, extent: float) -> Tensor:
    """Move as far along a direction as no entry falls below zero, times `extent`."""
    room = torch.where(direction < 0, weights / (-direction).clamp_min(torch.finfo(weights.dtype).tiny), torch.inf)
    step = room.amin(-1, keepdim=True)
    step = torch.where(step.isfinite(), step, torch.zeros_like(step))
    return weights + extent * step * direction


TOLERANCE = 1e-9  # relative to the largest singular value; logarithms of weights are exact to about 1e-15


def score_rank(weights: Tensor) -> Tensor:
    """Return the rank of the scores behind positive weights (..., R, n), up to a shift of each row, (...)."""
    logs = weights.log()
    s = torch.linalg.svdvals(logs - logs.mean(-1, keepdim=True))
    return (s > TOLERANCE * s[..., :1]).sum(-1)


def free_block(allowed: Tensor) -> tuple[slice, slice] | None:
    """Return rows and columns of (T, T) that no mask affects, or None if the mask is neither absent nor causal.

    Under a causal mask they are the later half of rows and the columns that all of these see.
    """
    tokens = allowed.shape[-1]
    if bool(allowed.all()):
        return slice(0, tokens), slice(0, tokens)
    if bool((allowed == torch.ones_like(allowed).tril()).all()):
        half = tokens // 2
        return slice(half, tokens), slice(0, half + 1)
    return None


Array = NDArray[np.float64]
SUPPORT = 1e-12  # smaller entries of a solution are zeros of the vertex
STEPS = 6  # linear programs of an ascent at most; it ends before at a vertex that the next program does not improve


def interval(row: Array, basis: Array, entry: int) -> tuple[Array, Array] | None:
    """Return the distributions that attain the ends of the range of one entry of a row (n,), or None if the solver fails.

    `basis` (n, r): orthonormal columns that span the columns of [T, 1].
    """
    slope = np.zeros_like(row)
    slope[entry] = 1.0
    low, high = best(row, basis, -slope), best(row, basis, slope)
    return None if low is None or high is None else (low, high)


def farthest(row: Array, basis: Array) -> Array | None:
    """Return a distribution (n,) as far from the row as the ascent reaches, or None if the solver stops without a solution.

    The ascent starts away from the entries that hold most of the weight.
    """
    order = np.argsort(-row)
    heavy = order[: 1 + int(np.searchsorted(np.cumsum(row[order]), 0.5 * row.sum()))]
    slope = np.ones_like(row)
    slope[heavy] = -1.0
    farthest_row, reached = row, 0.0
    for _ in range(STEPS):
        vertex = best(row, basis, slope)
        if vertex is None:
            return None
        gone = float(np.abs(vertex - row).sum())
        if gone <= reached * (1 + 1e-9):
            break
        farthest_row, reached = vertex, gone
        slope = np.where(vertex >= row, 1.0, -1.0)
    return farthest_row


def best(row: Array, basis: Array, slope: Array) -> Array | None:
    """Return the distribution with the largest slope . x, by HiGHS, with an exact solve on its support. None if the solver fails.

    Where there are at least as many conditions as entries, only the row itself meets them.
    """
    from scipy.optimize import linprog

    if basis.shape[1] >= basis.shape[0]:
        return row
    output = basis.T @ row
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    solution = linprog(-slope, A_eq=basis.T, b_eq=output, bounds=(0, None), method="highs", options=tight)
    if solution.x is None or solution.status != 0:
        return None
    x = np.where(solution.x > SUPPORT, solution.x, 0.0)
    inside = x > 0
    x[inside] += np.linalg.lstsq(basis[inside].T, output - basis.T @ x, rcond=None)[0]
    return np.maximum(x, 0.0)  # values below zero are rounding; the reported errors include the effect of the cut
