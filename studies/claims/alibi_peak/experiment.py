"""Compare products of t causal layers, whose scores are -m (i - j) alone or with random parts, with C(t - 1 + d, d) e^(-m d) at distance d.

With equal scores a layer is a convolution with e^(-m d), except for the denominators of the first rows, so t layers give the binomial. The
published form has C(t + d, d), whose largest entry is near d = t / (e^m - 1). m is that of the source.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from scipy.special import gammaln
from torch import Tensor

from rankfall import Context, Evidence, Network
from rankfall import evidence_row as row
from studies.claims.alibi_peak.names import OFF, PEAK
from studies.claims.draws import draw
from studies.claims.untrained import make

BUILDS = {"mask": ["causal"], "norm": ["layer"], "position": ["alibi"]}
NAME = "alibi_peak"
SLOPE = -math.log(0.8)  # of ALiBi, as in the source's decay of 0.8
LAYERS = (1, 2, 4, 8, 16, 32, 64, 128)
DEVIATIONS = {"equal scores": 0.0, "weak scores": 0.02, "strong scores": 0.25}


def alibi_peak(
    context: Context,
    *,
    tokens: int = 1024,
    width: int = 32,
    seeds: int = 5,
    layers: tuple[int, ...] | list[int] = LAYERS,
) -> Evidence:
    for seed in range(seeds):
        x = draw([seed], 1, tokens, width, name=NAME)
        for line, deviation in DEVIATIONS.items():
            init = {"name": "normal", "deviation": deviation}
            network = make(
                [seed], tokens, mask="causal", norm="layer", position="alibi", depth=max(layers), width=width, init=init
            )
            network.position.slopes = [SLOPE]
            for layer, last in zip(layers, last_rows(network, x, layers).flip(-1).numpy(), strict=True):  # by distance
                yield row(NAME, PEAK, line, layer, seed, int(last.argmax()))
                yield row(NAME, OFF, line, layer, seed, np.abs(last - closed_form(tokens, layer)).sum() / 2)
        for layer in layers:
            yield row(NAME, PEAK, "published, t / (e^m - 1)", layer, seed, layer / math.expm1(SLOPE))


def last_rows(network: Network, x: Tensor, layers: Sequence[int]) -> Tensor:
    """Return the last row of A_t ... A_1 for each t of `layers` (N, T). Rows go down through the layers, so no product is formed."""
    states = [network.first_state(x)]  # (1, 1, T, D) before each layer
    for block in network.blocks:
        states.append(block(states[-1]))
    last = torch.zeros(len(layers), x.shape[-2], dtype=x.dtype)
    for layer in range(len(network.blocks), 0, -1):
        last[[number for number, top in enumerate(layers) if top == layer], -1] = 1
        last = last @ network.blocks[layer - 1].attention.weights(states[layer - 1])[0, 0, 0]
    return last


def closed_form(tokens: int, layers: int, slope: float = SLOPE) -> np.ndarray:
    """Return shares by distance 0 .. T - 1, which sum to one."""
    distance = np.arange(tokens)
    logs = gammaln(layers + distance) - gammaln(layers) - gammaln(distance + 1) - slope * distance
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()
