"""Raise every query's score for the first token by s in causal networks with random weights, and measure how the other tokens mix.

Measured by s are what remains of the other tokens' differences after the last layer, and the share of a small change of one token that has
moved to the others. Networks have skip connections and norms before branches, or neither, and the first token's value is kept or zero.
"""

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor

from rankfall import Context, Evidence, Network
from rankfall import evidence_row as row
from studies.claims.draws import draw, spread
from studies.claims.parts import PRE_NORM
from studies.claims.sinks_slow_mixing.names import DRAWN, KEPT, LEAST, REACHED
from studies.claims.untrained import make

BUILDS = {"mask": ["causal"], "norm": ["layer", "none"], "residual": ["add", "none"]}
NAME = "sinks_slow_mixing"
BLOCKS: dict[str, dict[str, Any]] = {
    "skips": PRE_NORM,
    "no skips": {"residual": "none", "norm": "none", "norm_placement": "post"},
}
VALUES = {"value kept": 1.0, "value zero": 0.0}
SCORES = (0.0, 1.0, 2.0, 4.0, 8.0)


def sinks_slow_mixing(
    context: Context, *, depth: int = 16, tokens: int = 32, width: int = 64, heads: int = 4, seeds: int = 5
) -> Evidence:
    """Return the evidence. Weights are N(0, 1 / width), so that values keep their size and scores have a size of about one."""
    init = {"name": "normal", "deviation": width**-0.5}
    for seed in range(seeds):
        x = draw([seed], 1, tokens + 1, width, name=NAME)  # (1, 1, 1 + T, D): the first token is the sink
        change = torch.zeros_like(x)
        changed = 1 + tokens // 4
        change[0, 0, changed] = draw([seed], width, name=f"{NAME} change")[0]
        for block, fields in BLOCKS.items():
            network = make(
                [seed], tokens + 1, mask="causal", depth=depth, heads=heads, width=width, init=init, **fields
            )
            for value, factor in VALUES.items():
                for score in SCORES:
                    line = f"{block}, {value}"
                    drawn: list[Tensor] = []
                    last = run(network, x, score, factor, drawn)
                    moved = torch.func.jvp(partial(run, network, score=score, factor=factor), (x,), (change,))[1]
                    others = last[0, 0, 1:]
                    energy = moved[0, 0].square().sum(-1)  # (1 + T,)
                    kept = float(spread(others) / others.norm())
                    yield row(NAME, KEPT, line, score, seed, kept if kept > LEAST else math.nan, "below rounding")
                    yield row(NAME, REACHED, line, score, seed, float(1 - energy[changed] / energy.sum()))
                    yield row(NAME, DRAWN, line, score, seed, float(torch.stack(drawn).mean()))


def run(network: Network, x: Tensor, score: float, factor: float, drawn: list[Tensor] | None = None) -> Tensor:
    """Return the last state (1, B, T, D). `score` is added to every score of the first token, and `factor` multiplies its value. The
    attention of the other tokens to it in each layer is appended to `drawn`."""
    for block in network.blocks:
        read = block.norm1(x) if block.placement == "pre" else x
        attention = block.attention
        added = torch.zeros(x.shape[2], dtype=x.dtype)
        added[0] = score
        weights = (attention.logits(read) + added).softmax(-1)  # (1, B, H, T, T)
        if drawn is not None:
            drawn.append(weights[..., 1:, 0].mean())
        times = torch.ones(x.shape[2], dtype=x.dtype)
        times[0] = factor
        x = block.residual(x, attention.mix(weights * times, read))
    return x
