"""Measure the rank of tokens after many layers of attention with a norm that share their weights.

Layers start from equilibria constructed for each rank, exact and disturbed, and from random tokens with other value maps. k groups of equal
tokens are at orthonormal e_1 .. e_k, and queries and keys are the identity. The attention of a group is then a matrix A (k, k) of e^s on
the diagonal and 1 elsewhere, times sizes of groups, with rows divided by their sums. With V = E^T A^-1 E the output is A E V = E: an
equilibrium of rank k, for norms to length one.
"""

import torch
from torch import Tensor

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.draws import identity, numerical_rank, standard_normal
from studies.claims.norm_equilibria.names import DISTURBED, EXACT, MOVED, NAME, OTHERS, RANK

SCALE = 2.0  # s
TOLERANCE = 1e-6  # of a singular value, relative to the largest


def norm_equilibria(
    context: Context, *, layers: int = 2000, tokens: int = 6, width: int = 6, seeds: int = 5
) -> Evidence:
    for seed in range(seeds):
        basis = torch.linalg.qr(standard_normal(seed, width, width, name=f"{NAME} basis"))[0]
        noise = standard_normal(seed, tokens, width, name=f"{NAME} disturbance")
        for rank in range(1, tokens + 1):
            x, value = equilibrium(basis, tokens, rank)
            for name, start in ((EXACT, x), (DISTURBED, unit(x + 1e-6 * noise))):
                # An exact equilibrium is judged after one layer, since rounding is a perturbation too.
                end = run(start, value, 1 if name == EXACT else layers)
                yield row(NAME, RANK, name, rank, seed, numerical_rank(end, TOLERANCE))
                if name == EXACT:
                    moved = float((end - start).abs().max())
                    yield row(NAME, MOVED, name, rank, seed, float(torch.tensor(max(moved, 1e-17)).log10()))
        random = unit(noise)
        maps = (identity(width), basis, standard_normal(seed, width, width, name=f"{NAME} value") * width**-0.5)
        for place, value in enumerate(maps):
            yield row(NAME, OTHERS, "random start", place, seed, numerical_rank(run(random, value, layers), TOLERANCE))


def equilibrium(basis: Tensor, tokens: int, rank: int) -> tuple[Tensor, Tensor]:
    """Return tokens (T, D) in `rank` groups, and the value map (D, D)."""
    groups = torch.arange(tokens) % rank
    sizes = torch.bincount(groups, minlength=rank).to(basis)
    centres = basis[:rank]
    weights = (SCALE * identity(rank)).exp() * sizes  # (k, k): the weight of each group on each group
    weights = weights / weights.sum(-1, keepdim=True)
    return centres[groups], centres.T @ torch.linalg.inv(weights) @ centres


def run(x: Tensor, value: Tensor, layers: int) -> Tensor:
    """Return the tokens (T, D) after the layers."""
    for _ in range(layers):
        x = unit((SCALE * x @ x.T).softmax(-1) @ x @ value)
    return x


def unit(x: Tensor) -> Tensor:
    """Scale each token to length one."""
    return x / x.norm(dim=-1, keepdim=True)
