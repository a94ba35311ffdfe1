"""Measure attention weights by head, for the checks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from rankfall.check.scales import UNKNOWN, ScoreScale

MASKED = -9e3  # a smaller score is a mask, which libraries write as -1e4, -1e9 or -inf


@dataclass(frozen=True)
class HeadNumbers:
    """The attention weights of one call, by head (H,): means over rows that see at least two tokens."""

    layer: int
    where: str
    entropy: Tensor  # share of the entropy of uniform weights
    largest: Tensor
    first: Tensor  # share of the first token
    distance: Tensor  # mean distance in tokens
    logit: float  # largest score
    inverted: bool  # whether tokens of a sample have weight on later ones alone
    triangular: bool  # whether no token has weight on a later one, or a score that is not 0 or masked
    # axis of the softmax, if the product with the values sums over another
    sideways: list[int] = field(default_factory=list)
    scale: ScoreScale = UNKNOWN


def heads_of(layer: int, where: str, weights: Tensor, scores: Tensor | None) -> list[HeadNumbers]:
    """Return the numbers of a call's heads; nothing if no row sees two tokens. weights (..., T, S)"""
    weights = weights.detach().double()
    weights = weights.unsqueeze(1) if weights.dim() == 3 else weights.flatten(0, -4) if weights.dim() > 4 else weights
    visible = weights > 0 if scores is None else (scores > MASKED).reshape(weights.shape)
    count = visible.sum(-1)  # (B, H, T)
    rows = (count > 1) & weights.isfinite().all(-1)
    if not bool(rows.any()):
        return []
    keys = torch.arange(weights.shape[-1])
    distances = (torch.arange(weights.shape[-2])[:, None] - keys).abs().to(weights)

    def mean(values: Tensor) -> Tensor:  # (B, H, T) -> (H,)
        return torch.where(rows, values, 0.0).sum((0, 2)) / rows.sum((0, 2)).clamp_min(1)

    entropy = torch.special.entr(weights).sum(-1) / count.clamp_min(2).log()
    logit = float(scores[scores > MASKED].max()) if scores is not None else math.nan
    distance = mean((weights * distances).sum(-1))
    largest, first = mean(weights.amax(-1)), mean(weights[..., 0])
    square = weights.shape[-1] == weights.shape[-2] > 2
    before, later = ((part > 0)[:, :, :-1].flatten(1).any(1) for part in (weights.tril(), weights.triu(1)))  # (B,)
    inverted = square and bool((later & ~before).any())
    triangular = is_triangular(weights, scores)
    return [HeadNumbers(layer, where, mean(entropy), largest, first, distance, logit, inverted, triangular)]


def is_triangular(weights: Tensor, scores: Tensor | None) -> bool:
    """Return whether weights are zero above the diagonal and not below it, or scores are masked or zero there."""
    if weights.shape[-1] != weights.shape[-2] or weights.shape[-1] < 3:
        return False
    above = [weights.triu(1), *([] if scores is None else [scores.masked_fill(scores <= MASKED, 0.0).triu(1)])]
    return bool(weights.tril(-1).any()) and not all(bool(part.any()) for part in above)
