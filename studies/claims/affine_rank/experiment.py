"""Affine rank of tokens (of their differences) before and after a layer norm, for tokens in general position in an affine space of every
dimension, on a line through the origin, and in an affine space that the norm's own directions belong to; and the relative residual
beside it.
"""

import torch
from torch import Tensor

from rankfall import Context, Rows, relative_residual
from rankfall import evidence_row as row
from studies.claims.affine_rank.names import BESIDE, CHANGE, NAME, RESIDUAL, THROUGH
from studies.claims.untrained import standard_normal, unit_deviation

TOLERANCE = 1e-9  # of a singular value, relative to the largest


def affine_rank(context: Context, *, tokens: int = 12, width: int = 16, seeds: int = 20) -> Rows:
    rows: Rows = []
    for seed in range(seeds):
        for rank in range(1, tokens):
            for name in (BESIDE, THROUGH):
                x = tokens_of(seed, tokens, width, rank, name == THROUGH)
                y = unit_deviation(x)
                rows.append(row(NAME, CHANGE, name, rank, seed, rank_of(y) - rank_of(x)))
                ratio = relative_residual(y, norm="frobenius") / relative_residual(x, norm="frobenius")
                rows.append(row(NAME, RESIDUAL, name, rank, seed, float(ratio)))
    return rows


def tokens_of(seed: int, tokens: int, width: int, rank: int, through: bool) -> Tensor:
    """Return tokens (T, D) of this affine rank, in general position."""
    parts = [(tokens, rank, "coordinates"), (rank, width, "directions"), (1, width, "origin")]
    coordinates, directions, origin = (
        standard_normal(seed, a, b, name=f"{NAME} {rank} {what}") for a, b, what in parts
    )
    return coordinates @ directions + (0 if through else 3) * origin


def rank_of(x: Tensor) -> int:
    """Return the affine rank: the rank of the differences from the mean."""
    s = torch.linalg.svdvals(x - x.mean(0, keepdim=True))
    return int((s > TOLERANCE * s[0]).sum())
