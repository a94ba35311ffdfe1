"""Numbers of a state (S, T, D): residual, norm and effective rank."""

from __future__ import annotations

import math

from torch import Tensor

from rankfall.check.layer import LayerReport
from rankfall.rank.residual import relative_residual
from rankfall.rank.spectrum import effective_rank

LARGEST = 3  # channels


def fill_state_columns(state: Tensor, into: LayerReport) -> None:
    """Fill in the columns that need only the state, as means over samples."""
    into.residual = mean(relative_residual(state))
    if state.shape[-2] > 2:
        into.without_first = mean(relative_residual(state[:, 1:]))
    if state.shape[-1] > 2 * LARGEST:
        into.without_largest = mean(relative_residual(without_largest(state)))
    into.norm = length(state)
    into.effective_rank = mean(effective_rank(state.double()))


def length(state: Tensor) -> float | None:
    """Return the norm of a token's vector: RMS over tokens, mean over samples."""
    return mean(state.pow(2).sum(-1).mean(-1).sqrt())


def without_largest(state: Tensor) -> Tensor:
    """Return the state without the channels of the largest mean square over all samples and tokens."""
    size = state.pow(2).mean((0, 1))
    kept = size.argsort()[:-LARGEST].sort().values
    return state[..., kept]


def mean(values: Tensor) -> float | None:
    value = float(values.detach().mean())
    return value if math.isfinite(value) else None
