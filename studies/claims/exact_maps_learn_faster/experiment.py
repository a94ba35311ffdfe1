"""Count the steps of Adam until a doubly stochastic map of four streams is the target, in three parametrisations, and measure the smallest
error:

    Sinkhorn in 20 rounds; a convex sum of the 24 permutations; R_ij = |Q_ij|^2 / s with the s x s blocks Q_ij of an orthogonal matrix
    Q = (1 - A) (1 + A)^-1 of size n s, A = -A^T free.

The mean square error of R is the expected loss of a layer that mixes random streams and is to mix them by the target. Targets are convex
sums of permutations with weights uniform on the simplex.
"""

import itertools
import math
from collections.abc import Callable

import torch
from torch import Tensor

from rankfall import Context, Evidence, random_stream
from rankfall import evidence_row as row
from studies.claims.exact_maps_learn_faster.names import LEFT, NAME, ORTHOGONAL, PERMUTATIONS, SINKHORN, STEPS
from studies.claims.stream_products.maps import sinkhorn

COST = {"seconds": 30}
RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
REACHED = 1e-5  # mean square error that counts as the target
ROUNDS = 20  # of Sinkhorn, as in mHC


def exact_maps_learn_faster(
    context: Context, *, streams: int = 4, blocks: int = 2, steps: int = 1000, seeds: int = 20
) -> Evidence:
    orders = torch.stack(
        [torch.eye(streams, dtype=torch.float64)[list(order)] for order in itertools.permutations(range(streams))]
    )
    rng = [random_stream(seed, "claims", NAME) for seed in range(seeds)]
    weights = torch.stack([torch.from_numpy(generator.dirichlet([1.0] * len(orders))) for generator in rng])
    targets = torch.einsum("sp,pij->sij", weights, orders)
    size = streams * blocks
    forms: dict[str, tuple[tuple[int, ...], Callable[[Tensor], Tensor]]] = {
        SINKHORN: ((streams, streams), lambda free: sinkhorn(free, ROUNDS)),
        PERMUTATIONS: ((len(orders),), lambda free: torch.einsum("sp,pij->sij", free.softmax(-1), orders)),
        ORTHOGONAL: ((size, size), lambda free: by_orthogonal_blocks(free, blocks)),
    }
    for line, (shape, form) in forms.items():
        start = torch.stack([torch.from_numpy(generator.normal(size=shape)) for generator in rng])
        for rate in RATES:
            for seed, (count, error) in enumerate(learn(form, start, targets, rate, steps)):
                yield row(NAME, STEPS, line, rate, seed, math.log10(count))
                yield row(NAME, LEFT, line, rate, seed, math.log10(max(error, 1e-30)))


def learn(
    form: Callable[[Tensor], Tensor], start: Tensor, targets: Tensor, rate: float, steps: int
) -> list[tuple[int, float]]:
    """Return the first step with a small error (the number of steps plus one if none has), and the smallest error, for each seed."""
    free = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([free], lr=rate)
    first, least = torch.full((len(start),), steps + 1), torch.full((len(start),), math.inf, dtype=torch.float64)
    with torch.enable_grad():
        for step in range(1, steps + 1):
            errors = (form(free) - targets).square().mean((-2, -1))  # (seeds)
            least = torch.minimum(least, errors.detach())
            first = torch.where((errors.detach() < REACHED) & (first > steps), step, first)
            optimiser.zero_grad()
            errors.sum().backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return list(zip(first.tolist(), least.tolist(), strict=True))


def by_orthogonal_blocks(free: Tensor, blocks: int) -> Tensor:
    """Return doubly stochastic maps (..., n, n) from free numbers (..., n s, n s)."""
    skew = free - free.transpose(-1, -2)
    identity = torch.eye(free.shape[-1], dtype=free.dtype)
    squares = torch.linalg.solve(identity + skew, identity - skew).square()
    return squares.unflatten(-1, (-1, blocks)).sum(-1).unflatten(-2, (-1, blocks)).sum(-2) / blocks
