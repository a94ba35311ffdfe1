"""Measure the stable rank of the tokens after one and two layers of attention, by the number T of tokens, with and without the mean weight.

Inputs are orthonormal, X X^T = 1. Values go through a map of entries N(0, 1 / d), d = T. Weights are a softmax of independent numbers N(0,
log 2), or of queries and keys by Xavier's maps. There are two stable ranks: sum s^4 / max s^4 over singular values s of X, which is that of
X X^T, and the usual one of X, sum s^2 / max s^2.
"""

import math

import torch
from torch import Tensor

from rankfall import Context, Evidence, zero_sum
from rankfall import evidence_row as row
from studies.claims.draws import linear_map, standard_normal
from studies.claims.width_collapse.names import CURED, FOURTH, LOST, MASKS, USUAL, WEIGHTS

LAYERS = 2


def width_collapse(context: Context, *, lengths: list[int] = [32, 64, 128, 256, 512], seeds: int = 15) -> Evidence:
    for claim, mean_off in ((LOST, False), (CURED, True)):
        for weights in WEIGHTS:
            for mask in MASKS:
                for tokens in lengths:
                    for seed in range(seeds):
                        x = orthonormal(seed, tokens)
                        for layer in range(1, LAYERS + 1):
                            x = attend(x, seed, layer, weights, mask, mean_off)
                            s = torch.linalg.svdvals(x)
                            line = f"{weights}, {mask}"
                            yield row(claim, FOURTH.format(layer), line, tokens, seed, stable(s, 4))
                            yield row(claim, USUAL.format(layer), line, tokens, seed, stable(s, 2))


def stable(s: Tensor, power: int) -> float:
    """Return sum s^p / max s^p, NaN if all are zero."""
    return float(((s / s.max()) ** power).sum())


def orthonormal(seed: int, tokens: int) -> Tensor:
    """Return a randomly rotated identity (T, T)."""
    q, r = torch.linalg.qr(standard_normal(seed, tokens, tokens, name=f"{LOST} input"))
    rotation: Tensor = q * r.diagonal().sign()
    return rotation


def attend(x: Tensor, seed: int, layer: int, weights: str, mask: str, mean_off: bool) -> Tensor:
    """Return the tokens (T, D) after a layer of attention."""
    tokens, width = x.shape
    name = f"{LOST} {layer}"
    if weights == "independent scores":
        scores = math.log(2) ** 0.5 * standard_normal(seed, tokens, tokens, name=f"{name} scores")
    else:
        q, k = (x @ linear_map(seed, width, width, 1.0, f"{name} {part}") for part in ("query", "key"))
        scores = q @ k.T * width**-0.5
    if mask == "earlier tokens":
        scores = scores.masked_fill(~torch.ones(tokens, tokens, dtype=torch.bool).tril(), -torch.inf)
    attended = zero_sum(scores) if mean_off else scores.softmax(-1)
    return attended @ (x @ linear_map(seed, width, width, 1.0, f"{name} value"))
