"""A second attention distribution with the same output: no entry is negative, rows keep their sums, A~ T = A T.

`find_farthest` moves each row along directions of LN([T, 1]) as far as entries stay above zero, and keeps the farthest of a few points.
It is fast and handles all rows. The largest possible distance is a linear program for each row (programs.py).
"""

import torch
from torch import Tensor

from rankfall.identity.nullspace import column_space
from rankfall.identity.rows import GroupedRows

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
            apart = distance(moved, weights)
            better = apart > farthest
            best = torch.where(better.unsqueeze(-1), moved, best)
            farthest = torch.where(better, apart, farthest)
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


def sum_error(rows: GroupedRows, other: Tensor) -> Tensor:
    """Return the largest change of the sum of a row, (B, H)."""
    return (other - rows.weights).sum(-1).abs().amax((2, 3))


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
