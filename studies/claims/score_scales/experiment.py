"""Measure one layer of attention with three kinds of scores, by the number n of tokens.

Scores are cosines of the tokens times g log n, independent numbers times b sqrt(log n), or the sum of both. For cosines, queries, keys and
values are the tokens themselves, and the measured critical g puts half of a row's weight on the token itself. For independent scores,
queries and keys come from random maps, and the sum of squared weights is of a sample of rows. The same sum shows each kind at the other's
scale, and the token's own share shows the sum of both kinds.

Maps have to be wide: scores s of d dimensions are normal up to s^4 / (4 d), and the largest of n is sqrt(2 log n).
"""

import math
from itertools import product

import torch
from torch import Tensor

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.draws import cosine, like_tokens, linear_map, standard_normal, unit_deviation
from studies.claims.score_scales.limits import (
    cosine_after,
    critical_of_both,
    critical_of_cosines,
    critical_of_noise,
    squares_of_weights,
)
from studies.claims.score_scales.names import (
    BOTH,
    COSINE,
    CRITICAL,
    LIKE,
    NOISE,
    OF_CRITICAL,
    OWN,
    RANDOM,
    SHARES,
    SLOWER,
    SQUARES,
    WRONG,
)

FEW = 10  # seeds of all lines except random maps, whose numbers vary most


def score_scales(
    context: Context,
    *,
    tokens: list[int] = [64, 256, 1024],
    mapped: list[int] = [256, 1024, 4096, 16384],
    many: list[int] = [1024, 4096, 16384, 65536],
    cosines: list[float] = [0.2, 0.5, 0.8],
    correlations: list[float] = [0.0, 0.5],
    noises: list[float] = [0.0, 0.7, 1.2, 2.0],
    width: int = 1024,
    head_width: int = 1024,
    sampled: int = 128,
    seeds: int = 32,
) -> Evidence:
    for seed in range(seeds):
        for n in mapped:
            for rho in correlations:
                yield from measure_noise(seed, n, head_width, rho, min(4 * sampled, n))
        if seed >= FEW:
            continue
        for n in tokens:
            for rho in cosines:
                yield from measure_cosines(seed, n, width, rho)
        for n in many:
            yield from measure_at_other_scale(seed, n, sampled)
        for b in noises:
            yield from measure_both(seed, many[-1], cosines[len(cosines) // 2], b, sampled)
    for n, rho, (name, k) in product(tokens, cosines, OF_CRITICAL.items()):  # limits for every n
        limit = cosine_after(rho, k * critical_of_cosines(rho))
        yield row(LIKE, COSINE, f"limit, rho {rho:g}, {name}", n, 0, limit)
    for n, rho, (name, k) in product(mapped, correlations, SHARES.items()):
        limit = squares_of_weights(rho, k * critical_of_noise(rho))
        yield row(RANDOM, SQUARES, f"limit, rho {rho:g}, {name}", n, 0, limit)


def measure_cosines(seed: int, n: int, width: int, rho: float) -> Evidence:
    """Return the evidence on scores of cosines: the cosine after the layer, and the critical scale."""
    x = like_tokens(seed, n, width, rho, f"{LIKE} {rho:g}")
    products = x @ x.T
    critical = critical_of_cosines(rho)
    for name, k in OF_CRITICAL.items():
        after = (products * (k * critical * math.log(n))).softmax(-1) @ x
        yield row(LIKE, COSINE, f"rho {rho:g}, {name}", n, seed, float(cosine(after)))
    low, high = 0.0, 4 * critical
    for _ in range(30):  # the token's own share grows with the scale
        middle = (low + high) / 2
        own_share = (products * (middle * math.log(n))).softmax(-1).diagonal().mean()
        low, high = (middle, high) if float(own_share) < 0.5 else (low, middle)
    yield row(LIKE, CRITICAL, f"rho {rho:g}", n, seed, low / critical)


def measure_noise(seed: int, n: int, width: int, rho: float, sampled: int) -> Evidence:
    """Return the evidence on scores of random maps, at deviations of b sqrt(log n), for a sample of rows."""
    x = unit_deviation(like_tokens(seed, n, width, rho, f"{RANDOM} {rho:g} {n}"))  # (T, d)
    q = x[:sampled] @ linear_map(seed, width, width, 1.0, f"{RANDOM} query {n}")
    # q . k = q W_K^T x: keys of all tokens need not be computed. Scores (sampled, T) have deviation one.
    scores = q @ linear_map(seed, width, width, 1.0, f"{RANDOM} key {n}").T @ x.T * width**-0.5
    unit = critical_of_noise(rho) * math.log(n) ** 0.5
    for name, share in SHARES.items():
        weights = (scores * (share * unit)).softmax(-1)
        yield row(RANDOM, SQUARES, f"rho {rho:g}, {name}", n, seed, squares(weights))


def measure_at_other_scale(seed: int, n: int, sampled: int) -> Evidence:
    """Return the evidence on independent scores times log n, and cosines times sqrt(log n), each at twice the critical value of its own
    scale."""
    noise = standard_normal(seed, sampled, n, name=f"{BOTH} {n}")
    squared = squares((noise * (2 * math.sqrt(2) * math.log(n))).softmax(-1))
    # A token among others of cosine 0.5: one score of 1, n - 1 of 0.5.
    scale = 2 * critical_of_cosines(0.5) * math.log(n) ** 0.5
    own_share = 1 / (1 + (n - 1) * math.exp(-0.5 * scale))
    yield row(BOTH, WRONG, NOISE, n, seed, squared)
    yield row(BOTH, WRONG, SLOWER, n, seed, own_share**2 + (1 - own_share) ** 2 / (n - 1))


def measure_both(seed: int, n: int, rho: float, b: float, sampled: int) -> Evidence:
    """Return the token's own share over the scale of cosines, in units of the scale at which theory has it win."""
    noise = standard_normal(seed, sampled, n, name=f"{BOTH} mixed {n}") * (b * math.log(n) ** 0.5)
    critical = critical_of_both(rho, b)
    base = torch.full((sampled, n), rho, dtype=torch.float64).fill_diagonal_(1.0)  # cosines of tokens with all tokens
    for part in (0.25, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 2.0):
        own_shares = (base * (part * critical * math.log(n)) + noise).softmax(-1).diagonal()
        yield row(BOTH, OWN, f"noise {b:g}", part, seed, float(own_shares.mean()))


def squares(weights: Tensor) -> float:
    """Return the sum of the squared weights of a row, mean over rows (rows, T)."""
    return float(weights.square().sum(-1).mean())
