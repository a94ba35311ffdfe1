"""Train causal transformers of one layer on the parity of the bits so far, with PaTH attention, with rotary positions and with none.

Measured are right answers at the last eight tokens of texts of the trained length, and of two and four times that length.
"""

from functools import partial

import torch
from torch import Tensor

from rankfall import Context, Evidence, random_stream
from rankfall import evidence_row as row
from studies.claims.householder_paths_track_states.names import NAME, NONE, PATH, RIGHT, ROPE
from studies.claims.trained import grade, model, train

COST = {"seconds": 80}
BUILDS = {
    "attention": ["path"],
    "embedding": ["token"],
    "head": ["classifier"],
    "mask": ["causal"],
    "mlp": ["gelu"],
    "norm": ["layer"],
    "position": ["rope"],
    "residual": ["add"],
}
KINDS = {PATH: {"attention": "path"}, ROPE: {"position": "rope"}, NONE: {}}
LONGER = (1, 2, 4)
LATE = 8  # tokens that are asked


def householder_paths_track_states(
    context: Context,
    *,
    steps: int = 600,
    length: int = 16,
    width: int = 32,
    heads: int = 2,
    samples: int = 32,
    rate: float = 3e-3,
    seeds: int = 4,
) -> Evidence:
    for seed in range(seeds):
        for line, fields in KINDS.items():
            init = {"name": "normal", "deviation": width**-0.5}
            network = model(seed, length, 3, mask="causal", width=width, heads=heads, init=init, **fields)
            for _ in train(network, partial(bits, seed, samples=samples, length=length), steps, rate):
                pass
            for times in LONGER:
                inputs, targets = bits(seed, -times, 4 * samples, times * length)
                targets[:, :-LATE] = -1
                with torch.no_grad():
                    _, right = grade(network, inputs, targets)
                yield row(NAME, RIGHT, line, times * length, seed, float(right))


def bits(seed: int, step: int, samples: int, length: int) -> tuple[Tensor, Tensor]:
    """Return a first token and bits (B, T), and the parity of the bits up to each token (B, T)."""
    drawn = torch.from_numpy(random_stream(seed, "claims", NAME, step).integers(2, size=(samples, length)))
    drawn[:, 0] = 2
    parity = (drawn * (drawn < 2)).cumsum(1) % 2
    parity[:, 0] = -1
    return drawn, parity
