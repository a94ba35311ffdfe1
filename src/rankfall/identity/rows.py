"""Rows of attention weights with the values they may combine.

These are all rows of a layer if all rows may attend to the same tokens, or a few evenly spaced rows if a mask gives each row its own
tokens. A masked row i combines T_i, the rows of T that it may attend to. The other rows of T are set to zero, which changes neither
singular values nor left singular vectors, so that all rows of a layer have the same shape.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from rankfall.identity.views import AttentionView
from rankfall.rank.powers import unit

OUTLIER = 6.0  # threshold in sizes of the median channel


@dataclass(frozen=True)
class GroupedRows:
    """G groups of R rows; the rows of a group may attend to the same tokens."""

    weights: Tensor  # (B, H, G, R, n), zero where not allowed
    values: Tensor  # (B, H, G, n, r): T in coordinates of its row space, scaled, zero where not allowed
    allowed: Tensor  # (G, n)
    places: Tensor  # (G, R): positions in the sequence

    @property
    def sizes(self) -> Tensor:
        """Number of tokens that a row may attend to, (G,)."""
        return self.allowed.sum(-1)

    @cached_property
    def svd(self) -> tuple[Tensor, Tensor]:
        """Left singular vectors (B, H, G, n, r) and singular values over the largest (B, H, G, r) of T."""
        u, s, _ = torch.linalg.svd(self.values, full_matrices=False)
        return u, s / s[..., :1].clamp_min(torch.finfo(s.dtype).tiny)


def rows_of(
    view: AttentionView, *, masked: int = 8, without_first: bool = False, channels: Tensor | None = None
) -> GroupedRows:
    """Group the rows of a view.

    `masked`: number of rows if each has its own mask. `without_first`: drop the first token and scale the other weights of a row to its
    previous sum. `channels` (D,): channels of the residual stream to keep; None: all.
    """
    allowed = view.allowed.clone()
    if without_first:
        allowed[:, 0] = False
    first = 1 if without_first else 0
    if bool((allowed[first:] == allowed[-1]).all()):
        places = torch.arange(first, view.tokens)[None]  # (1, R)
    else:
        count = min(masked, view.tokens - first)
        places = torch.linspace(view.tokens - 1, first, count).round().long().unique()[:, None]  # (G, 1)
    allowed = allowed[places[:, 0]]  # (G, n)
    values = view.compact() if channels is None else _compact(view, channels)
    weights = view.weights[:, :, places]  # (B, H, G, R, n)
    if without_first:
        rest = weights.masked_fill(~allowed[:, None], 0.0)
        sums = rest.sum(-1, keepdim=True)
        weights = rest * torch.where(sums == 0, 0.0, weights.sum(-1, keepdim=True) / sums)
    return GroupedRows(weights, values[:, :, None] * allowed[:, :, None], allowed, places)


def _compact(view: AttentionView, channels: Tensor) -> Tensor:
    return replace(view, output=view.output[..., channels]).compact()


def outlier_channels(states: Tensor) -> Tensor:
    """Return which channels (D,) of states (B, T, D) are outliers.

    Their root mean square over tokens and samples is above 6 times the median of all channels.
    """
    size = unit(states, (0, 1, 2)).square().mean((0, 1)).sqrt()
    return size > OUTLIER * size.median()
