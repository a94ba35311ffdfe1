"""Rank and left null space of T: the directions in which attention weights can change without a change of the output.

Weights A and A + A~ give the same output if the rows of A~ are in LN(T) = {x: x^T T = 0}, of dimension n - rank(T). If rows also keep
their sum, they are in LN([T, 1]) (Brunner et al. 2020, section 3). The rank counts singular values above `tolerance` times the largest.
"""

import torch
from torch import Tensor

from rankfall.identity.rows import GroupedRows

EXACT = 1e-13  # directions below this change an output of size 1 by no more than rounding


def rank(rows: GroupedRows, tolerance: float) -> Tensor:
    """Return the numerical rank of T, (B, H, G)."""
    return (rows.svd[1] > tolerance).sum(-1)


def null_dimension(rows: GroupedRows, tolerance: float) -> Tensor:
    """Return dim LN(T), (B, H, G)."""
    return rows.sizes - rank(rows, tolerance)


def null_dimension_simplex(rows: GroupedRows, tolerance: float) -> Tensor:
    """Return dim LN([T, 1]), (B, H, G): dim LN(T) less one, unless the ones already are a combination of columns of T."""
    return null_dimension(rows, tolerance) - (_ones_left(rows, tolerance).norm(dim=-1) > tolerance).long()


def column_space(rows: GroupedRows, tolerance: float = EXACT, *, sums: bool = True) -> Tensor:
    """Return orthonormal columns (B, H, G, n, r or r + 1) that span the columns of T, and of 1 if `sums`, padded with zeros."""
    u, s = rows.svd
    u = u * (s > tolerance).unsqueeze(-2)
    if not sums:
        return u
    left = _ones_left(rows, tolerance)
    size = left.norm(dim=-1, keepdim=True)
    column = torch.where(size > tolerance, left / size.clamp_min(torch.finfo(size.dtype).tiny), torch.zeros_like(left))
    return torch.cat([u, column.unsqueeze(-1)], -1)


def _ones_left(rows: GroupedRows, tolerance: float) -> Tensor:
    """Return the part of 1 / sqrt(n) outside the columns of T, (B, H, G, n)."""
    u, s = rows.svd
    u = u * (s > tolerance).unsqueeze(-2)
    ones = (rows.allowed / rows.sizes.sqrt().unsqueeze(-1)).to(u.dtype)  # (G, n)
    ones = ones.expand(*u.shape[:-1])
    for _ in range(2):  # twice, since a single projection leaves rounding errors as large as a small remainder
        ones = ones - (u @ (u.mT @ ones.unsqueeze(-1))).squeeze(-1)
    return ones


def effective(rows: GroupedRows, tolerance: float) -> Tensor:
    """Return effective attention A T T^+ (B, H, G, R, n): the smallest weights that give the same output. It is not a distribution."""
    u = column_space(rows, tolerance, sums=False)
    return (rows.weights @ u) @ u.mT
