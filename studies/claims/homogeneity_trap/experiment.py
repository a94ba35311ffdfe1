"""Measure the second singular value of maps between tokens, Sinkhorn's and softmax's of the same random scores, by temperature.

Also measured is what eight layers X <- N(M X + noise) keep of the tokens' products X X^T, with layer norms and without norms, by the ratio
of signal to noise in a layer.
"""

import torch
from torch import Tensor

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.draws import standard_normal, unit_deviation
from studies.claims.homogeneity_trap.names import KEPT, NORMED, PLAIN, SECOND, SINKHORN, SOFTMAX
from studies.claims.stream_products.maps import sinkhorn

NAME = "homogeneity_trap"
COST = {"seconds": 5}
TEMPERATURES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
ROUNDS = 200  # of Sinkhorn
DECADES = (-3, 0, 3, 6, 9, 12)  # log10 of signal to noise


def homogeneity_trap(
    context: Context, *, tokens: int = 32, width: int = 64, layers: int = 8, seeds: int = 20
) -> Evidence:
    for seed in range(seeds):
        scores = standard_normal(seed, tokens, tokens, name=NAME)
        for temperature in TEMPERATURES:
            for line, matrix in (
                (SINKHORN, sinkhorn(scores / temperature, ROUNDS)),
                (SOFTMAX, (scores / temperature).softmax(-1)),
            ):
                yield row(NAME, SECOND, line, temperature, seed, float(torch.linalg.svdvals(matrix)[1]))
        x = standard_normal(seed, tokens, width, name=f"{NAME} tokens")
        x = x - x.mean(0)
        maps = [
            sinkhorn(standard_normal(seed, tokens, tokens, name=f"{NAME} {layer}"), ROUNDS) for layer in range(layers)
        ]
        for line in (NORMED, PLAIN):
            clean = run(x, maps, line, seed, None)
            for decade in DECADES:
                noisy = run(x, maps, line, seed, 10.0**decade)
                yield row(NAME, KEPT, line, decade, seed, correlation(noisy @ noisy.T, clean @ clean.T))


def run(x: Tensor, maps: list[Tensor], line: str, seed: int, ratio: float | None) -> Tensor:
    """Return the last state (T, D). `ratio`: the mean square of M X over that of the noise added to it, None without noise."""
    for layer, matrix in enumerate(maps):
        y = matrix @ x
        if ratio is not None:
            noise = standard_normal(seed, *x.shape, name=f"{NAME} noise {layer}")
            y = y + noise * (y.square().mean() / ratio).sqrt()
        x = unit_deviation(y) if line == NORMED else y
    return x


def correlation(a: Tensor, b: Tensor) -> float:
    """Return the correlation of the entries of two matrices (T, T) off the diagonal."""
    pairs = ~torch.eye(len(a), dtype=torch.bool)
    return float(torch.corrcoef(torch.stack([a[pairs], b[pairs]]))[0, 1])
