"""Comparison of raw and effective attention, and the kinds of tokens that they go to."""

import torch
from torch import Tensor

from rankfall.identity.rows import GroupedRows
from rankfall.identity.views import KINDS
from rankfall.rank.powers import least, unit


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


def shares(weights: Tensor, kinds: Tensor) -> Tensor:
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
