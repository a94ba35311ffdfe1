"""Rank of tokens after many layers of attention with a norm that share their weights: from equilibria constructed for each rank, exact and
perturbed, and from random tokens with other value maps.

k groups of equal tokens at orthonormal e_1 .. e_k, queries and keys the identity: the attention of a group is a matrix A (k, k) of e^s on
the diagonal, 1 elsewhere, times sizes of groups, rows divided by their sums. With V = E^T A^-1 E the output A E V = E: an equilibrium of
rank k, for norms to length one.
"""

import torch
from torch import Tensor

from rankfall import Context, Rows
from rankfall import evidence_row as row
from studies.claims.norm_equilibria.names import DISTURBED, EXACT, MOVED, NAME, OTHERS, RANK
from studies.claims.untrained import identity, standard_normal

SCALE = 2.0  # s
TOLERANCE = 1e-6  # of a singular value, relative to the largest


def norm_equilibria(context: Context, *, layers: int = 2000, tokens: int = 6, width: int = 6, seeds: int = 5) -> Rows:
    rows: Rows = []
    for seed in range(seeds):
        basis = torch.linalg.qr(standard_normal(seed, width, width, name=f"{NAME} basis"))[0]
        noise = standard_normal(seed, tokens, width, name=f"{NAME} disturbance")
        for rank in range(1, tokens + 1):
            x, value = equilibrium(basis, tokens, rank)
            for name, start in ((EXACT, x), (DISTURBED, unit(x + 1e-6 * noise))):
                # An exact equilibrium is judged after one layer, since rounding is a perturbation too.
                end = run(start, value, 1 if name == EXACT else layers)
                rows.append(row(NAME, RANK, name, rank, seed, rank_of(end)))
                if name == EXACT:
                    moved = float((end - start).abs().max())
                    rows.append(row(NAME, MOVED, name, rank, seed, float(torch.tensor(max(moved, 1e-17)).log10())))
        random = unit(noise)
        maps = (identity(width), basis, standard_normal(seed, width, width, name=f"{NAME} value") * width**-0.5)
        for place, value in enumerate(maps):
            rows.append(row(NAME, OTHERS, "random start", place, seed, rank_of(run(random, value, layers))))
    return rows


def equilibrium(basis: Tensor, tokens: int, rank: int) -> tuple[Tensor, Tensor]:
    """Return tokens (T, D) in `rank` groups, and the value map (D, D)."""
    groups = torch.arange(tokens) % rank
    sizes = torch.bincount(groups, minlength=rank).to(basis)
    centres = basis[:rank]
    weights = (SCALE * identity(rank)).exp() * sizes  # (k, k): the weight of each group on each group
    weights = weights / weights.sum(-1, keepdim=True)
    return centres[groups], centres.T @ torch.linalg.inv(weights) @ centres


def run(x: Tensor, value: Tensor, layers: int) -> Tensor:
    for _ in range(layers):
        x = unit((SCALE * x @ x.T).softmax(-1) @ x @ value)
    return x


def unit(x: Tensor) -> Tensor:
    return x / x.norm(dim=-1, keepdim=True)


def rank_of(x: Tensor) -> int:
    s = torch.linalg.svdvals(x)
    return int((s > TOLERANCE * s[0]).sum())
