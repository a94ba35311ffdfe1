"""Draw maps R (n, n) between the n streams of a network, and measure their products."""

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from studies.claims.untrained import identity, standard_normal


def sinkhorn(scores: Tensor, rounds: int) -> Tensor:
    """Return e^scores with columns and rows divided by their sums in turn. Rows sum to one, and for many rounds the map is doubly
    stochastic."""
    matrix = scores.softmax(-1)
    for _ in range(rounds):
        matrix = matrix / matrix.sum(-2, keepdim=True)
        matrix = matrix / matrix.sum(-1, keepdim=True)
    return matrix


def free(seed: int, layer: int, streams: int, deviation: float) -> Tensor:
    """Return the identity plus noise."""
    return identity(streams) + deviation * standard_normal(seed, streams, streams, name=f"stream map {layer}")


def stochastic(seed: int, layer: int, streams: int, sharpness: float, rounds: int) -> Tensor:
    """Return Sinkhorn's map of noise plus `sharpness` times the identity."""
    noise = standard_normal(seed, streams, streams, name=f"stream map {layer}")
    return sinkhorn(noise + sharpness * identity(streams), rounds)


def log10_gains(maps: Iterable[Tensor]) -> list[float]:
    """Return log10 of the largest absolute sum of a row (forward) or a column (backward) of the products R_L ... R_1."""
    product, gains = None, []
    for matrix in maps:
        product = matrix if product is None else matrix @ product
        size = product.abs()
        gains.append(float(torch.maximum(size.sum(-1).amax(), size.sum(-2).amax()).log10()))
    return gains


def log10_rates(seeds: Sequence[int], maps: int, streams: int, deviations: Sequence[float]) -> list[list[float]]:
    """Return the decades per map by which products of `maps` maps 1 + d N lengthen a vector, for each seed and d: the largest Lyapunov
    exponent."""
    drawn = [standard_normal(seed, maps, streams, streams, name="long stream maps") for seed in seeds]
    noise = torch.stack(drawn, 1)  # (L, K, n, n)
    widths = torch.tensor(deviations, dtype=noise.dtype)
    # One vector of length one for each seed and d: (K, n, number of d).
    vectors = torch.full((len(seeds), streams, len(deviations)), streams**-0.5, dtype=noise.dtype)
    logs = torch.zeros(len(seeds), len(deviations), dtype=noise.dtype)
    for matrices in noise:
        vectors = vectors + widths * (matrices @ vectors)
        lengths = vectors.norm(dim=1)
        vectors, logs = vectors / lengths.unsqueeze(1), logs + lengths.log10()
    rates: list[list[float]] = (logs / maps).tolist()
    return rates


def log10_spread(maps: Iterable[Tensor]) -> list[float]:
    """Return log10 of how far rows of R_L ... R_1 are from their mean, Frobenius, over that of the identity: what remains of the
    differences of streams. R 1 = 1, so R acts on the differences alone, and there is no rounding floor: (1 - J) R_L ... R_1 = (1 - J) R_L
    (1 - J) R_(L-1) ... with J = 1 1^T / n."""
    product, log, logs = None, 0.0, []
    for matrix in maps:
        n = len(matrix)
        centred = identity(n) - 1 / n
        product = centred @ matrix @ (identity(n) if product is None else product)
        size = float(product.norm())
        product, log = product / size, log + math.log10(size)
        logs.append(log - math.log10(n - 1) / 2)
    return logs
