"""Measure one layer of attention with three kinds of scores, by the number n of tokens.

Scores are cosines of the tokens times g log n, independent numbers times b sqrt(log n), or the sum of both. For cosines, queries, keys and
values are the tokens themselves, and the measured critical g puts half of a row's weight on the token itself. For independent scores,
queries and keys come from random maps, and the sum of squared weights is of a sample of rows. The same sum shows each kind at the other's
scale, and the token's own share shows the sum of both kinds.

Maps have to be wide: scores s of d dimensions are normal up to s^4 / (4 d), and the largest of n is sqrt(2 log n).
"""

import math

import torch
from torch import Tensor

from rankfall import Context, Rows
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
) -> Rows:
    rows: Rows = []
    for seed in range(seeds):
        for n in mapped:
            for rho in correlations:
                rows += measure_noise(seed, n, head_width, rho, min(4 * sampled, n))
        if seed >= FEW:
            continue
        for n in tokens:
            for rho in cosines:
                rows += measure_cosines(seed, n, width, rho)
        for n in many:
            rows += measure_at_other_scale(seed, n, sampled)
        for b in noises:
            rows += measure_both(seed, many[-1], cosines[len(cosines) // 2], b, sampled)
    for n in tokens:  # limits for every n
        for rho in cosines:
            rows += [
                row(LIKE, COSINE, f"limit, rho {rho:g}, {name}", n, 0, cosine_after(rho, k * critical_of_cosines(rho)))
                for name, k in OF_CRITICAL.items()
            ]
    for n in mapped:
        for rho in correlations:
            rows += [
                row(
                    RANDOM,
                    SQUARES,
                    f"limit, rho {rho:g}, {name}",
                    n,
                    0,
                    squares_of_weights(rho, k * critical_of_noise(rho)),
                )
                for name, k in SHARES.items()
            ]
    return rows


def measure_cosines(seed: int, n: int, width: int, rho: float) -> Rows:
    """Return the evidence on scores of cosines: the cosine after the layer, and the critical scale."""
    x = like_tokens(seed, n, width, rho, f"{LIKE} {rho:g}")
    products = x @ x.T
    critical = critical_of_cosines(rho)
    rows = [
        row(
            LIKE,
            COSINE,
            f"rho {rho:g}, {name}",
            n,
            seed,
            float(cosine((products * (k * critical * math.log(n))).softmax(-1) @ x)),
        )
        for name, k in OF_CRITICAL.items()
    ]
    low, high = 0.0, 4 * critical
    for _ in range(30):  # the token's own share grows with the scale
        middle = (low + high) / 2
        own_share = (products * (middle * math.log(n))).softmax(-1).diagonal().mean()
        low, high = (middle, high) if float(own_share) < 0.5 else (low, middle)
    return [*rows, row(LIKE, CRITICAL, f"rho {rho:g}", n, seed, low / critical)]


def measure_noise(seed: int, n: int, width: int, rho: float, sampled: int) -> Rows:
    """Return the evidence on scores of random maps, at deviations of b sqrt(log n), for a sample of rows."""
    x = unit_deviation(like_tokens(seed, n, width, rho, f"{RANDOM} {rho:g} {n}"))  # (T, d)
    q = x[:sampled] @ linear_map(seed, width, width, 1.0, f"{RANDOM} query {n}")
    # q . k = q W_K^T x: keys of all tokens need not be computed
    scores = (
        q @ linear_map(seed, width, width, 1.0, f"{RANDOM} key {n}").T @ x.T * width**-0.5
    )  # (sampled, T), of deviation one
    unit = critical_of_noise(rho) * math.log(n) ** 0.5
    return [
        row(RANDOM, SQUARES, f"rho {rho:g}, {name}", n, seed, squares((scores * (share * unit)).softmax(-1)))
        for name, share in SHARES.items()
    ]


def measure_at_other_scale(seed: int, n: int, sampled: int) -> Rows:
    """Return the evidence on independent scores times log n, and cosines times sqrt(log n), each at twice the critical value of its own
    scale."""
    noise = standard_normal(seed, sampled, n, name=f"{BOTH} {n}")
    squared = squares((noise * (2 * math.sqrt(2) * math.log(n))).softmax(-1))
    # A token among others of cosine 0.5: one score of 1, n - 1 of 0.5.
    scale = 2 * critical_of_cosines(0.5) * math.log(n) ** 0.5
    own_share = 1 / (1 + (n - 1) * math.exp(-0.5 * scale))
    return [
        row(BOTH, WRONG, NOISE, n, seed, squared),
        row(BOTH, WRONG, SLOWER, n, seed, own_share**2 + (1 - own_share) ** 2 / (n - 1)),
    ]


def measure_both(seed: int, n: int, rho: float, b: float, sampled: int) -> Rows:
    """Return the token's own share over the scale of cosines, in units of the scale at which theory has it win."""
    noise = standard_normal(seed, sampled, n, name=f"{BOTH} mixed {n}") * (b * math.log(n) ** 0.5)
    critical = critical_of_both(rho, b)
    base = own_and_others(n, rho, sampled)
    return [
        row(
            BOTH,
            OWN,
            f"noise {b:g}",
            part,
            seed,
            float((base * (part * critical * math.log(n)) + noise).softmax(-1).diagonal().mean()),
        )
        for part in (0.25, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 2.0)
    ]


def own_and_others(n: int, rho: float, sampled: int) -> Tensor:
    """Return the cosines of the first tokens with all tokens: 1 with itself, rho with others (sampled, n)."""
    base = torch.full((sampled, n), rho, dtype=torch.float64)
    return base.fill_diagonal_(1.0)


def squares(weights: Tensor) -> float:
    """Return the sum of the squared weights of a row, mean over rows (rows, T)."""
    return float(weights.square().sum(-1).mean())
