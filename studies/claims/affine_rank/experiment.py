"""Measure the affine rank of tokens before and after a layer norm, and the relative residual beside it.

The affine rank is the rank of the tokens' differences. Tokens are in general position in affine spaces of every dimension, beside the
origin or through it.
"""

from torch import Tensor

from rankfall import Context, Evidence, relative_residual
from rankfall import evidence_row as row
from studies.claims.affine_rank.names import BESIDE, CHANGE, NAME, RESIDUAL, THROUGH
from studies.claims.draws import numerical_rank, standard_normal, unit_deviation

TOLERANCE = 1e-9  # of a singular value, relative to the largest


def affine_rank(context: Context, *, tokens: int = 12, width: int = 16, seeds: int = 20) -> Evidence:
    for seed in range(seeds):
        for rank in range(1, tokens):
            for name in (BESIDE, THROUGH):
                x = draw_tokens(seed, tokens, width, rank, name == THROUGH)
                y = unit_deviation(x)
                yield row(NAME, CHANGE, name, rank, seed, count_affine_rank(y) - count_affine_rank(x))
                ratio = relative_residual(y, norm="frobenius") / relative_residual(x, norm="frobenius")
                yield row(NAME, RESIDUAL, name, rank, seed, float(ratio))


def draw_tokens(seed: int, tokens: int, width: int, rank: int, through: bool) -> Tensor:
    """Return tokens (T, D) of this affine rank, in general position."""
    parts = [(tokens, rank, "coordinates"), (rank, width, "directions"), (1, width, "origin")]
    coordinates, directions, origin = (
        standard_normal(seed, a, b, name=f"{NAME} {rank} {part}") for a, b, part in parts
    )
    return coordinates @ directions + (0 if through else 3) * origin


def count_affine_rank(x: Tensor) -> int:
    """Return the rank of the tokens' differences from their mean."""
    return numerical_rank(x - x.mean(0, keepdim=True), TOLERANCE)
