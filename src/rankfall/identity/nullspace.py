"""Rank and left null space of T: the directions in which attention weights can change without a change of the output.

Weights A and A + A~ give the same output if the rows of A~ are in LN(T) = {x: x^T T = 0}, of dimension n - rank(T). If rows also keep
their sum, they are in LN([T, 1]) (Brunner et al. 2020, section 3). The rank counts singular values above `tolerance` times the largest.

`GroupedRows` has all rows of a layer if all may attend to the same tokens, or a few evenly spaced ones if a mask gives each row its own.
A masked row i combines T_i, the rows of T that it may attend to. The other rows of T are set to zero, which changes neither singular
values nor left singular vectors, so that all rows of a layer have the same shape.

Raw attention is compared with effective attention, A less its part in LN(T), by the kinds of tokens that they go to.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from rankfall.identity.views import KINDS, AttentionView
from rankfall.rank.powers import least, unit

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

    def columns(self, tolerance: float) -> Tensor:
        """Return orthonormal columns (B, H, G, n, r) that span those of T, padded with zeros."""
        return self.svd[0] * (self.svd[1] > tolerance).unsqueeze(-2)


def group_rows(view: AttentionView, *, masked: int = 8, without_first: bool = False) -> GroupedRows:
    """Group the rows of a view.

    `masked`: number of rows if each has its own mask. `without_first`: drop the first token and scale the other weights of a row to its
    previous sum.
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
    values = view.compact()
    weights = view.weights[:, :, places]  # (B, H, G, R, n)
    if without_first:
        kept = weights.masked_fill(~allowed[:, None], 0.0)
        sums = kept.sum(-1, keepdim=True)
        weights = kept * torch.where(sums == 0, 0.0, weights.sum(-1, keepdim=True) / sums)
    return GroupedRows(weights, values[:, :, None] * allowed[:, :, None], allowed, places)


def outlier_channels(states: Tensor) -> Tensor:
    """Return which channels (D,) of states (B, T, D) are outliers.

    Their root mean square over tokens and samples is above 6 times the median of all channels.
    """
    size = unit(states, (0, 1, 2)).square().mean((0, 1)).sqrt()
    return size > OUTLIER * size.median()


EXACT = 1e-13  # directions below this change an output of size 1 by no more than rounding


def rank(rows: GroupedRows, tolerance: float) -> Tensor:
    """Return the numerical rank of T, (B, H, G)."""
    return (rows.svd[1] > tolerance).sum(-1)


def null_dimension(rows: GroupedRows, tolerance: float) -> Tensor:
    """Return dim LN(T), (B, H, G)."""
    return rows.sizes - rank(rows, tolerance)


def null_dimension_simplex(rows: GroupedRows, tolerance: float) -> Tensor:
    """Return dim LN([T, 1]), (B, H, G): dim LN(T) less one, unless the ones already are a combination of columns of T."""
    return null_dimension(rows, tolerance) - (_ones_outside(rows, tolerance).norm(dim=-1) > tolerance).long()


def column_space(rows: GroupedRows) -> Tensor:
    """Return orthonormal columns (B, H, G, n, r + 1) that span the columns of T and of 1, padded with zeros."""
    outside = _ones_outside(rows, EXACT)
    size = outside.norm(dim=-1, keepdim=True)
    column = torch.where(
        size > EXACT, outside / size.clamp_min(torch.finfo(size.dtype).tiny), torch.zeros_like(outside)
    )
    return torch.cat([rows.columns(EXACT), column.unsqueeze(-1)], -1)


def _ones_outside(rows: GroupedRows, tolerance: float) -> Tensor:
    """Return the part of 1 / sqrt(n) outside the columns of T, (B, H, G, n)."""
    u = rows.columns(tolerance)
    ones = (rows.allowed / rows.sizes.sqrt().unsqueeze(-1)).to(u.dtype)  # (G, n)
    ones = ones.expand(*u.shape[:-1])
    for _ in range(2):  # twice, since a single projection leaves rounding errors as large as a small remainder
        ones = ones - (u @ (u.mT @ ones.unsqueeze(-1))).squeeze(-1)
    return ones


def effective_attention(rows: GroupedRows, tolerance: float) -> Tensor:
    """Return effective attention A T T^+ (B, H, G, R, n): the smallest weights that give the same output. It is not a distribution."""
    u = rows.columns(tolerance)
    return (rows.weights @ u) @ u.mT


def correlation(rows: GroupedRows, other: Tensor) -> Tensor:
    """Return the Pearson correlation of A with other weights (B, H, G, R, n) over all allowed entries of a head, (B, H).

    It is NaN where either is constant.
    """
    mask = rows.allowed[:, None].expand_as(rows.weights).to(rows.weights.dtype)
    count = mask.sum((2, 3, 4))[:, :, None, None, None]

    def center(x: Tensor) -> Tensor:
        return (x - (x * mask).sum((2, 3, 4), keepdim=True) / count) * mask

    # Without the scaling, products of weights of 1e-200 would be zero.
    a, b = (unit(center(unit(x, (2, 3, 4))), (2, 3, 4)) for x in (rows.weights, other))
    return (a * b).sum((2, 3, 4)) / (a.square().sum((2, 3, 4)) * b.square().sum((2, 3, 4))).sqrt()


def identity_error(rows: GroupedRows, other: Tensor) -> Tensor:
    """Return max |A_eff T - A T| over max |A T|, (B, H): the error of the identity that defines effective attention."""
    before = rows.weights @ rows.values
    size = before.abs().amax((2, 3, 4))
    return (other @ rows.values - before).abs().amax((2, 3, 4)) / size


def shares_by_kind(weights: Tensor, kinds: Tensor) -> Tensor:
    """Return the share of |weights| (B, H, G, R, n) on each kind of token, (B, H, len(KINDS)). `kinds` is (B, n)."""
    going = weights.abs().sum((2, 3))  # (B, H, n)
    hot = torch.nn.functional.one_hot(kinds, len(KINDS)).to(weights.dtype)  # (B, n, 4)
    whole = going.sum(-1, keepdim=True)
    return torch.where(whole >= least(whole.dtype), (going @ hot) / whole, torch.nan)


def entropy(rows: GroupedRows) -> Tensor:
    """Return the entropy of rows in nats, mean over rows, (B, H)."""
    return torch.special.entr(rows.weights).sum(-1).mean((2, 3))


def first_mass(rows: GroupedRows) -> Tensor:
    """Return the weight on the first token, mean over the rows of all other tokens, (B, H): the attention sink."""
    others = (rows.places > 0).to(rows.weights.dtype)  # (G, R)
    return (rows.weights[..., 0] * others).sum((2, 3)) / others.sum()
