"""Train causal language models of one layer with five normalisers, and measure the weight on the first token where there is nothing to
copy.

Also measured is how many of the tokens after a trigger are predicted, which only copying can do. Both are by training step.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from rankfall import Context, Evidence, Network
from rankfall import evidence_row as row
from studies.claims.sinks_need_normalisation.names import COPIED, DRAWN, TAKEN
from studies.claims.sinks_need_normalisation.texts import TRIGGERS, chain, texts
from studies.claims.trained import grade, model, train

COST = {"seconds": 170}
BUILDS = {
    "embedding": ["token"],
    "head": ["classifier"],
    "mask": ["causal"],
    "mlp": ["gelu"],
    "norm": ["layer"],
    "normaliser": ["softmax", "relu2_sum", "sigmoid", "relu2", "sink"],
    "position": ["learned"],
    "residual": ["add"],
}
NEED, KEY = "sinks_need_normalisation", "a_key_of_its_own_takes_the_sink"
NORMALISERS: dict[str, Any] = {
    "softmax": "softmax",
    "relu2, rows sum to one": "relu2_sum",
    "sigmoid, no normalisation": "sigmoid",
    "relu2, no normalisation": "relu2",
    "softmax with a learned key of no value": "sink",
}


def sinks_need_normalisation(
    context: Context,
    *,
    steps: int = 1500,
    symbols: int = 16,
    length: int = 24,
    width: int = 32,
    heads: int = 1,
    samples: int = 16,
    rate: float = 1e-2,
    seeds: int = 5,
) -> Evidence:
    shown = sorted({0, steps // 8, steps // 4, steps // 2, steps})
    for seed in range(seeds):
        probabilities = chain(seed, symbols)
        test = texts(seed, -1, probabilities, 8 * samples, length)
        for line, normaliser in NORMALISERS.items():
            init = {"name": "normal", "deviation": width**-0.5}
            network = model(
                seed, length + 1, symbols + 1, mask="causal", position="learned", normaliser=normaliser,
                width=width, heads=heads, init=init,
            )  # fmt: skip
            draw = partial(texts, seed, probabilities=probabilities, samples=samples, length=length)
            for step in train(network, draw, steps, rate):
                if step in shown:
                    for quantity, value in measure_first_token(network, *test).items():
                        for claim in (NEED, KEY):
                            yield row(claim, quantity, line, step, seed, value)


@torch.no_grad()
def measure_first_token(network: Network, inputs: Tensor, targets: Tensor) -> dict[str, float]:
    """Return the weight on the first token and on the key of its own where nothing is to be copied, and the share of right copies."""
    block = network.blocks[0]
    state = network.lift(inputs[None])
    weights = block.attention.weights(block.norm1(state))[0].mean(1)  # (B, T, T)
    copies = inputs < TRIGGERS
    copies[:, :2] = False  # there is nothing before the first trigger to copy
    idle = ~copies
    idle[:, :2] = False  # BOS sees only itself, and the first token little else
    _, right = grade(network, inputs, targets.masked_fill(~copies, -1))
    measured = {DRAWN: float(weights[..., 0][idle].mean()), COPIED: float(right)}
    return measured | {TAKEN: float(1 - weights.sum(-1)[idle].mean())}
