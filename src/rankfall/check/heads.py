"""Measure attention weights by head, for the checks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from rankfall.check.attention import SDPA, UNKNOWN, ScoreScale, named_arguments
from rankfall.streams.branches import PRODUCTS_OF_TWO

MASKED = -9e3  # a smaller score is a mask, which libraries write as -1e4, -1e9 or -inf


@dataclass(frozen=True)
class HeadNumbers:
    """The attention weights of one call, by head (H,): means over rows that see at least two tokens."""

    layer: int
    where: str
    entropy: Tensor  # share of the entropy of uniform weights
    largest: Tensor
    first: Tensor  # share of the first token; NaN if keys are no tokens of the stream, as lags
    distance: Tensor  # mean distance in tokens; NaN if keys are no tokens of the stream
    logit: float  # largest score
    inverted: bool  # whether tokens of a sample have weight on later ones alone
    selfless: bool  # whether tokens have weight on earlier ones, and none on themselves
    triangular: bool  # whether no token has weight on a later one, or a score that is not 0 or masked
    zeroed: bool  # whether tokens have weight on later ones, and scores of 0
    scale: ScoreScale = UNKNOWN


def heads_first(weights: Tensor, axis: int, tokens: int) -> Tensor:
    """Return weights (..., H, T, S) for those that a softmax over `axis` lays out as (B, T, S, H), (T, S, H) or (B, T, H, S)."""
    if weights.shape[-1] == weights.shape[-2]:
        return weights
    rows = weights.movedim(axis, -1)
    first = 0 if rows.dim() == 3 else 1
    apart = rows.shape[-2] != tokens or axis % weights.dim() != weights.dim() - 1
    if not apart or rows.shape[first] != tokens:
        return weights
    rows = rows.movedim(first, -2)
    return rows if first else rows[None]


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
    square = weights.shape[-1] == weights.shape[-2] > 2
    largest, unknown = mean(weights.amax(-1)), torch.full((weights.shape[1],), math.nan)
    distance, first = (mean((weights * distances).sum(-1)), mean(weights[..., 0])) if square else (unknown, unknown)
    before, later = ((part > 0)[:, :, :-1].flatten(1).any(1) for part in (weights.tril(), weights.triu(1)))  # (B,)
    inverted = square and bool((later & ~before).any())
    selfless = square and not bool(weights.diagonal(dim1=-2, dim2=-1)[..., 1:].any()) and bool(weights.tril(-1).any())
    triangular = is_triangular(weights, scores)
    zeroed = triangular and scores is not None and bool(((scores == 0) & (scores.abs() + weights > 0)).triu(1).any())
    return [
        HeadNumbers(
            layer, where, mean(entropy), largest, first, distance, logit, inverted, selfless, triangular, zeroed
        )
    ]


class SharedHeads:
    """Compare which heads share their keys with which share their values, as heads of a group do."""

    def __init__(self) -> None:
        self.unlike: list[tuple[str, str]] = []  # module, and a sentence
        self.keys: dict[int, Tensor] = {}  # by number of branch
        self.weights: dict[int, tuple[int, str, Tensor]] = {}  # by id: number of branch, module, weights

    def see_scores(self, number: int, pair: list[Tensor]) -> None:
        self.keys[number] = pair[-1]

    def see_attention(
        self, number: int, where: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        if func is F.scaled_dot_product_attention:
            named = named_arguments(SDPA, args, kwargs)
            self.compare(where, named["key"], named["value"])
        elif isinstance(result, Tensor):
            self.weights[id(result)] = number, where, result

    def see_product(self, func: Any, args: tuple[Any, ...]) -> None:
        """Compare keys and values if an operation is the product of weights and values."""
        if getattr(func, "__name__", "") in PRODUCTS_OF_TWO and len(args) > 1 and id(args[0]) in self.weights:
            number, where, _ = self.weights[id(args[0])]
            if number in self.keys:
                self.compare(where, self.keys[number], args[1])

    def compare(self, where: str, keys: Tensor, values: Tensor) -> None:
        if keys.dim() == values.dim() == 4 and keys.shape[1] == values.shape[1]:
            groups = [groups_of(x) for x in (keys, values)]
            if groups[0] != groups[1] and all(len(set(group)) < keys.shape[1] for group in groups):
                sentences = [" | ".join(join_heads(group)) for group in groups]
                self.unlike.append((where, f"heads share keys as {sentences[0]}, and values as {sentences[1]}"))


def groups_of(x: Tensor) -> list[int]:
    """Return, for each head of (B, H, T, d), the first head that is equal to it."""
    heads = x.detach().transpose(0, 1).flatten(1)  # (H, B * T * d)
    return [next(first for first in range(len(heads)) if torch.equal(heads[first], head)) for head in heads]


def join_heads(groups: list[int]) -> list[str]:
    return [",".join(str(head) for head, first in enumerate(groups) if first == key) for key in sorted(set(groups))]


def is_triangular(weights: Tensor, scores: Tensor | None) -> bool:
    """Return whether weights are zero above the diagonal and not below it, or scores are masked or zero there."""
    if weights.shape[-1] != weights.shape[-2] or weights.shape[-1] < 3:
        return False
    parts = [weights, *([] if scores is None else [scores.masked_fill(scores <= MASKED, 0.0)])]
    return any(bool(part.tril(-1).any()) and not bool(part.triu(1).any()) for part in parts)
