"""Maps R (n, n) between the n streams of a network, and properties of their products."""

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from studies.claims.untrained import identity, standard_normal


def sinkhorn(scores: Tensor, rounds: int) -> Tensor:
    """Return e^scores with columns and rows divided by their sums in turn. Rows sum to one, and for many rounds the map is doubly
    stochastic."""
    found = scores.softmax(-1)
    for _ in range(rounds):
        found = found / found.sum(-2, keepdim=True)
        found = found / found.sum(-1, keepdim=True)
    return found


def free(seed: int, layer: int, streams: int, deviation: float) -> Tensor:
    """Return the identity plus noise."""
    return identity(streams) + deviation * standard_normal(seed, streams, streams, name=f"stream map {layer}")


def stochastic(seed: int, layer: int, streams: int, sharpness: float, rounds: int) -> Tensor:
    """Return Sinkhorn's map of noise plus `sharpness` times the identity."""
    noise = standard_normal(seed, streams, streams, name=f"stream map {layer}")
    return sinkhorn(noise + sharpness * identity(streams), rounds)


def log10_gains(maps: Iterable[Tensor]) -> list[float]:
    """Return log10 of the largest absolute sum of a row (forward) or a column (backward) of the products R_L ... R_1."""
    product, found = None, []
    for one in maps:
        product = one if product is None else one @ product
        size = product.abs()
        found.append(float(torch.maximum(size.sum(-1).amax(), size.sum(-2).amax()).log10()))
    return found


def log10_rates(seed: int, maps: int, streams: int, deviations: Sequence[float]) -> list[float]:
    """Return the decades per map by which products of `maps` maps 1 + d N lengthen a vector, for each d: the largest Lyapunov exponent."""
    noise = standard_normal(seed, maps, streams, streams, name="long stream maps")  # (L, n, n)
    widths = torch.tensor(deviations, dtype=noise.dtype)
    vectors = torch.full(
        (streams, len(deviations)), streams**-0.5, dtype=noise.dtype
    )  # (n, number of d), of length one
    logs = torch.zeros_like(widths)
    for one in noise:
        vectors = vectors + widths * (one @ vectors)
        lengths = vectors.norm(dim=0)
        vectors, logs = vectors / lengths, logs + lengths.log10()
    return (logs / maps).tolist()


def log10_spread(maps: Iterable[Tensor]) -> list[float]:
    """Return log10 of how far rows of R_L ... R_1 are from their mean, Frobenius, over that of the identity: what remains of the
    differences of streams. R 1 = 1, so R acts on the differences alone, and there is no rounding floor: (1 - J) R_L ... R_1 = (1 - J) R_L
    (1 - J) R_(L-1) ... with J = 1 1^T / n."""
    rest, log, found = None, 0.0, []
    for one in maps:
        n = len(one)
        centred = identity(n) - 1 / n
        rest = centred @ one @ (identity(n) if rest is None else rest)
        size = float(rest.norm())
        rest, log = rest / size, log + math.log10(size)
        found.append(log - math.log10(n - 1) / 2)
    return found
