"""Products of t causal layers whose scores are -m (i - j), equal or with random parts, against C(t - 1 + d, d) e^(-m d) at distance d.

With equal scores a layer is a convolution with e^(-m d), but for the denominators of the first rows; t of them have the binomial. The
published form has C(t + d, d), whose largest entry lies near d = t / (e^m - 1). m is that of the source.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.special import gammaln

from rankfall.claims.rows import row
from rankfall.claims.untrained import draw, make

if TYPE_CHECKING:
    from rankfall.measure.context import Context, Rows

TABLE = "evidence"
NEEDS = "nothing"
BUILDS = {"mask": ["causal"], "norm": ["layer"], "position": ["alibi"]}
NAME = "alibi_peak"
PEAK = "distance of the largest entry of the last row, by layers"
OFF = "total variation distance from the closed form, by layers"
FIRST = "share of the last row at the first token, by layers"
SLOPE = -math.log(0.8)
LAYERS = (1, 2, 4, 8, 16, 32, 64, 128)
DEVIATIONS = {"equal scores": 0.0, "weak scores": 0.02, "strong scores": 0.25}


def alibi_peak(
    context: Context,
    *,
    tokens: int = 256,
    width: int = 32,
    seeds: int = 5,
    layers: tuple[int, ...] | list[int] = LAYERS,
) -> Rows:
    rows: Rows = []
    for seed in range(seeds):
        x = draw([seed], 1, tokens, width, name=NAME)
        for line, deviation in DEVIATIONS.items():
            init = {"name": "normal", "deviation": deviation}
            network = make(
                [seed], tokens, mask="causal", norm="layer", position="alibi", depth=max(layers), width=width, init=init
            )
            network.position.slopes = [SLOPE]
            state, product = network.place(x), torch.eye(tokens, dtype=x.dtype)
            for layer, block in enumerate(network.blocks, 1):
                product = block.attention.weights(state)[0, 0, 0] @ product
                state = block(state)
                if layer in layers:
                    last = product[-1].flip(0).numpy()  # by distance from the last token
                    rows.append(row(NAME, PEAK, line, layer, seed, int(last.argmax())))
                    rows.append(row(NAME, OFF, line, layer, seed, np.abs(last - closed_form(tokens, layer)).sum() / 2))
                    rows.append(row(NAME, FIRST, line, layer, seed, last[-1]))
        for layer in layers:
            rows.append(row(NAME, PEAK, "published, t / (e^m - 1)", layer, seed, layer / math.expm1(SLOPE)))
    return rows


def closed_form(tokens: int, layers: int, slope: float = SLOPE) -> np.ndarray:
    """Shares by distance 0 .. T - 1, which sum to one."""
    distance = np.arange(tokens)
    logs = gammaln(layers + distance) - gammaln(layers) - gammaln(distance + 1) - slope * distance
    found = np.exp(logs - logs.max())
    return found / found.sum()
