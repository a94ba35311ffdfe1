"""Numbers of a state (S, T, D): how different its tokens are, how large, and in how many directions."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rankfall.check.layer import LayerReport
from rankfall.rank.residual import relative_residual

LARGEST = 3  # channels


def of_state(state: Tensor, into: LayerReport) -> None:
    """Fill in the columns that need the state alone; means over samples."""
    into.residual = mean(relative_residual(state))
    if state.shape[-2] > 2:
        into.without_first = mean(relative_residual(state[:, 1:]))
    if state.shape[-1] > 2 * LARGEST:
        into.without_largest = mean(relative_residual(without_largest(state)))
    into.norm = length(state)
    into.effective_rank = mean(effective_rank(state))


def length(state: Tensor) -> float | None:
    """Of a token's vector: root of the mean square over tokens, mean over samples."""
    return mean(state.pow(2).sum(-1).mean(-1).sqrt())


def without_largest(state: Tensor) -> Tensor:
    """The state without the channels of the largest mean square over all samples and tokens."""
    size = state.pow(2).mean((0, 1))
    kept = size.argsort()[:-LARGEST].sort().values
    return state[..., kept]


def effective_rank(state: Tensor) -> Tensor:
    """exp of the entropy of the singular values as shares of their sum, (S, T, D) -> (S). k equal ones: k; equal rows: 1."""
    if not bool(state.isfinite().all()):
        return torch.full(state.shape[:1], math.nan)
    values = torch.linalg.svdvals(state)
    shares = values / values.sum(-1, keepdim=True)
    return torch.special.entr(shares).sum(-1).exp()


def mean(values: Tensor) -> float | None:
    value = float(values.detach().mean())
    return value if math.isfinite(value) else None
