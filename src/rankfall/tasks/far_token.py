"""Predict the first token at the last: a single token has to cross the whole sequence, and nothing else counts.

The first token is one of `letters`, and all others are drawn from `fillers` other symbols, so that the letter is recognised without
position encoding. Only the last token has a target. An attention that looks for a letter solves the task in one layer. A network whose
tokens have become one vector cannot, since the mean of all tokens is nearly that of the fillers.
"""

from typing import Any

import numpy as np
import torch

from rankfall.tasks._dataset import Dataset, Reads, classified

INPUTS = "tokens"
TARGETS = "classes"
LIMITS = {"train": (1, None), "test": (1, None), "length": (2, None), "letters": (2, None), "fillers": (1, None)}


def far_token(
    rng: np.random.Generator,
    *,
    train: int = 1000,
    test: int = 200,
    length: int = 16,
    letters: int = 8,
    fillers: int = 8,
) -> Dataset:
    """Draw uniform and independent letters and fillers. Chance is the accuracy of the most frequent letter."""
    count = train + test
    letter = torch.from_numpy(rng.integers(letters, size=(count, 1)))
    filler = torch.from_numpy(rng.integers(letters, letters + fillers, size=(count, length - 1)))
    inputs = torch.cat([letter, filler], 1)  # (N, T)
    targets = torch.full_like(inputs, -1)
    targets[:, -1] = inputs[:, 0]
    return classified(inputs, targets, train, letters + fillers, letters)


def attainable(reads: Reads, *, length: int, letters: int, **_: Any) -> float:
    """Return 1 if the last token reads the first, else the accuracy of guessing a letter."""
    return 1.0 if 0 in reads(length)[-1] else 1 / letters
