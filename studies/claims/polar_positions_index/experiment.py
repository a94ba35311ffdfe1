"""Causal transformers trained on indirect indexing, with polar and with rotary positions: given letters, one of them and a shift, say the
letter that stands so many places to the left or right of it."""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from rankfall import Context, Rows, random_stream
from rankfall import evidence_row as row
from studies.claims.polar_positions_index.names import NAME, POLAR, RIGHT, ROPE
from studies.claims.trained import grade, model, train

COST = {"seconds": 150}
BUILDS = {
    "embedding": ["token"],
    "head": ["classifier"],
    "mask": ["causal"],
    "mlp": ["gelu"],
    "norm": ["layer"],
    "position": ["polar", "rope"],
    "residual": ["add"],
}
KINDS: dict[str, Any] = {POLAR: {"name": "polar", "spread": 1.8}, ROPE: "rope"}


def polar_positions_index(
    context: Context,
    *,
    steps: int = 1500,
    letters: int = 12,
    shown: int = 8,
    farthest: int = 3,
    depth: int = 3,
    width: int = 48,
    heads: int = 4,
    samples: int = 64,
    rate: float = 3e-3,
    seeds: int = 4,
) -> Rows:
    rows: Rows = []
    kept = sorted({0, steps // 8, steps // 4, steps // 2, steps})
    for seed in range(seeds):
        draw = partial(questions, seed, samples=samples, letters=letters, shown=shown, farthest=farthest)
        test = questions(seed, -1, 16 * samples, letters, shown, farthest)
        for line, position in KINDS.items():
            network = model(
                seed, shown + 3, letters + 2 * farthest + 2, mask="causal", position=position, depth=depth, width=width,
                heads=heads, init={"name": "normal", "deviation": width**-0.5},
            )  # fmt: skip
            for step in train(network, draw, steps, rate):
                if step in kept:
                    with torch.no_grad():
                        _, right = grade(network, *test)
                    rows.append(row(NAME, RIGHT, line, step, seed, float(right)))
    return rows


def questions(seed: int, step: int, samples: int, letters: int, shown: int, farthest: int) -> tuple[Tensor, Tensor]:
    """Return texts (B, T) of different letters, a mark, one of the letters and a shift, and the answer at the last token (B, T)."""
    rng = random_stream(seed, "claims", NAME, step)
    text = rng.permuted(rng.permuted(range(letters))[None].repeat(samples, 0), axis=1)[:, :shown]
    place = rng.integers(shown, size=samples)
    low, high = (-place).clip(min=-farthest), (shown - 1 - place).clip(max=farthest)
    shift = rng.integers(low, high + 1)
    found = torch.from_numpy(text)
    every = torch.arange(samples)
    mark = torch.full((samples, 1), letters)
    asked = found[every, torch.from_numpy(place)].unsqueeze(1)
    answer = found[every, torch.from_numpy(place + shift)]
    inputs = torch.cat([found, mark, asked, torch.from_numpy(shift + farthest + letters + 1).unsqueeze(1)], 1)
    targets = torch.full_like(inputs, -1)
    targets[:, -1] = answer
    return inputs, targets
