"""Mixing of tokens by a layer of attention, from its weights alone and from the weighted vectors.

A layer's output at token j is a sum over tokens i, f_ji = sum_h A_h,ji T_h,i. The residual connection adds x_j, and a norm then scales
the result. The layer's matrix of contributions is

    attention        mean over heads of |A_h,ji|
    rollout          half of that, half the skip connection: (A + 1) / 2        (Abnar and Zuidema 2020); A where there is no skip
    norms            ||norm(f_ji + [i = j] x_j)||                                 (Kobayashi et al. 2020, 2021)

with rows that sum to one. Over several layers, `rollout` and `norms` are products of the layers' matrices. The mixing ratio of Kobayashi
et al. 2021 is the share that the other tokens add: ||sum_(i != j) ...|| / (||sum_(i != j) ...|| + ||what j itself adds||).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from rankfall.identity.views import AttentionView, JoinView
from rankfall.rank.powers import exponent_of, least, length, shift, unit


@dataclass(frozen=True)
class Mixing:
    """Mixing of one layer: matrices (B, T, T) of rows j and columns i that sum to one, and mixing ratios (B, T)."""

    attention: Tensor
    rollout: Tensor
    norms: Tensor | None  # None, with a reason, where the layer is not norm(skip + attention)
    reason: str
    ratios: dict[str, Tensor]


def mixing(view: AttentionView) -> Mixing:
    """Compute the mixing of one layer.

    Norms come from products of the heads' values at each token, so the T x T x D vectors are never formed.
    """
    join = view.join
    skip = None if isinstance(join, str) else join.skip
    attention = _rows(view.weights.abs().mean(1))  # (B, T, T)
    same = torch.eye(view.tokens, dtype=attention.dtype, device=attention.device)
    skipped = isinstance(join, str) or skip is not None
    rollout = (attention + same) / 2 if skipped else attention
    alone = 1 - attention.diagonal(dim1=-2, dim2=-1)
    itself, others = _split_sum(view, 1.0)  # (B, T, D)
    ratios = {
        "attention": alone,
        "norms": _ratio(itself, others),
        "attention and skip": alone / 2 if skipped else alone,
    }
    if isinstance(join, str):
        return Mixing(attention, rollout, None, join, ratios)
    if join.norm is not None and join.norm.over != -1:
        return Mixing(attention, rollout, None, "the norm acts on tokens together", ratios)
    itself, others = _split_sum(view, join.factor)
    itself = itself if skip is None else itself + skip
    ratios["norms and skip"] = _ratio(itself, others)
    whole = itself + others + join.factor * view.bias
    if join.norm is not None:
        itself, others = join.norm.part(itself, whole), join.norm.part(others, whole)
    ratios["norms, skip and norm"] = _ratio(itself, others)
    return Mixing(attention, rollout, _rows(_sizes(view, join, itself, whole)), "", ratios)


def roll_out(matrices: list[Tensor]) -> Tensor:
    """Return the product of the layers' matrices, the last layer leftmost: each input token's contribution after the last layer."""
    product = matrices[0]
    for matrix in matrices[1:]:
        product = matrix @ product
    return product


def _split_sum(view: AttentionView, factor: float) -> tuple[Tensor, Tensor]:
    """Return what token j itself, and what all others, add to its sum (B, T, D)."""
    diagonal = view.weights.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)  # (B, H, T, 1)
    itself = torch.einsum("bhtv,hvd->btd", diagonal * view.values, view.output)
    return factor * itself, factor * (view.attend() - view.bias - itself)


def _sizes(view: AttentionView, join: JoinView, itself: Tensor, whole: Tensor) -> Tensor:
    """Return ||norm(f_ji + [i = j] x_j)|| (B, T, T).

    The norm is linear in its parts: it subtracts the mean over features and scales features by its gain and the token by a number. So
    ||.||^2 = spread_j^2 sum_hh' A_h,ji A_h',ji <T_h,i, T_h',i> with centred, scaled T.
    """
    vectors = view.map_values() * join.factor  # (B, H, T, D)
    exponent = exponent_of(vectors, (1, 2, 3))  # (B,): squares of small vectors would be zero
    vectors = unit(vectors, (1, 2, 3))
    spread: Tensor | float = 1.0
    if join.norm is not None:
        spread = join.norm.spread(whole)  # (B, T, 1)
        vectors = join.norm.center(vectors) * join.norm.gain
    products = torch.einsum("bhtd,bgtd->bthg", vectors, vectors)  # (B, T, H, H) at each token i
    weights = unit(view.weights, (1, 2, 3))
    exponent = exponent + exponent_of(view.weights, (1, 2, 3))
    squares = torch.einsum("bhji,bihg,bgji->bji", weights, products, weights)
    sizes = shift(squares.clamp_min(0).sqrt(), exponent[:, None, None]) * spread
    sizes.diagonal(dim1=-2, dim2=-1).copy_(length(itself))
    return sizes


def _ratio(itself: Tensor, others: Tensor) -> Tensor:
    """Return the share that others add (B, T); NaN where the two together are too small."""
    own_length, other_length = length(itself), length(others)
    return _mask_unknown(other_length / (own_length + other_length), own_length + other_length)


def _rows(matrix: Tensor) -> Tensor:
    """Scale rows to sum to one; NaN where a row is zero, or beyond the range of its format."""
    size = matrix.sum(-1, keepdim=True)
    return _mask_unknown(matrix / size, size)


def _mask_unknown(shares: Tensor, size: Tensor) -> Tensor:
    return torch.where((size >= least(size.dtype)) & size.isfinite(), shares, torch.nan)
