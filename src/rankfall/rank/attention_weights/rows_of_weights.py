"""Statistics of rows of attention weights (..., T, T), as pure functions."""

import torch
from torch import Tensor

QUANTITIES = ("entropy", "inverse_participation", "largest_share", "first_share")


def without_first(weights: Tensor) -> Tensor:
    """Drop the first row and column: (..., T, T) -> (..., T - 1, T - 1)."""
    return weights[..., 1:, 1:]


def shares(weights: Tensor) -> Tensor:
    """Return |a_ij| / sum_j |a_ij|; NaN in rows of zeros.

    Rows are divided by their largest entry first, so that no sum overflows or vanishes.
    """
    size = weights.abs()
    size = size / size.amax(-1, keepdim=True)
    return size / size.sum(-1, keepdim=True)


def of_rows(weights: Tensor) -> dict[str, Tensor]:
    """Return each quantity (..., T) of every row of weights (..., T, T'); NaN for a row of zeros."""
    p = shares(weights)
    return {
        "entropy": -torch.xlogy(p, p).sum(-1),
        "inverse_participation": p.square().sum(-1),
        "largest_share": p.amax(-1),
        "first_share": p[..., 0],
    }
