"""Train small language models with learned positions and without. Causal models predict the next token of a text, masked models hidden
tokens.

The next token depends on the last two, x_t = (x_(t-1) + k x_(t-2)) mod V except for noise, so that both need order.
"""

from functools import partial

import numpy as np
import torch
from torch import Tensor

from rankfall import Context, Evidence, random_stream
from rankfall import evidence_row as row
from studies.claims.order_without_positions.names import LOSS, RIGHT
from studies.claims.trained import grade, model, train

COST = {"seconds": 150}
BUILDS = {
    "embedding": ["token"],
    "head": ["classifier"],
    "mask": ["causal", "none"],
    "mlp": ["gelu"],
    "norm": ["layer"],
    "position": ["learned", "none"],
    "residual": ["add"],
}
NAME = "order_without_positions"
HIDDEN = 0.15


def order_without_positions(
    context: Context,
    *,
    steps: int = 1500,
    symbols: int = 8,
    length: int = 24,
    width: int = 32,
    heads: int = 4,
    depth: int = 2,
    samples: int = 16,
    rate: float = 1e-2,
    seeds: int = 4,
) -> Evidence:
    shown = sorted({0, steps // 4, steps // 2, steps})
    for seed in range(seeds):
        for task in ("causal", "masked"):
            test = draw(seed, -1, task, symbols, 16 * samples, length)
            for position in ("learned", "none"):
                init = {"name": "normal", "deviation": width**-0.5}
                network = model(
                    seed, length, symbols + 1, mask="causal" if task == "causal" else "none", position=position,
                    width=width, heads=heads, depth=depth, init=init,
                )  # fmt: skip
                line = f"{task}, {'learned positions' if position == 'learned' else 'no positions'}"
                batches = partial(draw, seed, task=task, symbols=symbols, samples=samples, length=length)
                for step in train(network, batches, steps, rate):
                    if step in shown:
                        with torch.no_grad():
                            loss, right = grade(network, *test)
                        yield row(NAME, LOSS, line, step, seed, float(loss))
                        yield row(NAME, RIGHT, line, step, seed, float(right))


def draw(seed: int, step: int, task: str, symbols: int, samples: int, length: int) -> tuple[Tensor, Tensor]:
    """Return inputs and targets (B, T). A tenth of the tokens are noise."""
    rng = random_stream(seed, "claims", NAME, "text", step)
    text = np.empty((samples, length), dtype=np.int64)
    text[:, :2] = rng.integers(symbols, size=(samples, 2))
    for place in range(2, length):
        following = (text[:, place - 1] + 3 * text[:, place - 2]) % symbols
        noise = rng.random(samples) < 0.1
        text[:, place] = np.where(noise, rng.integers(symbols, size=samples), following)
    if task == "causal":
        targets = np.concatenate([text[:, 1:], np.full((samples, 1), -1)], 1)
        targets[:, 0] = -1  # the second token is unpredictable
        return torch.from_numpy(text), torch.from_numpy(targets)
    hidden = rng.random(text.shape) < HIDDEN
    hidden[:, length // 2] |= ~hidden.any(1)
    return torch.from_numpy(np.where(hidden, symbols, text)), torch.from_numpy(np.where(hidden, text, -1))
