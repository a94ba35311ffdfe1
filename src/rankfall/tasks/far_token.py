"""Say at the last token which letter stood at the first: one single token has to cross the whole sequence, and nothing else counts.

The first token is one of `letters`, all others are drawn from `fillers` other symbols, so that the letter is known by what it is and no
position encoding is needed. Only the last token is asked. An attention that looks for a letter solves it in one layer; a network whose
tokens have become one vector cannot, for the mean of all tokens is nearly that of the fillers.
"""

from typing import Any

import numpy as np
import torch

from rankfall.tasks._dataset import Dataset, Reads, majority_chance, split_samples

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
    """Letters and fillers are uniform and independent. Chance is that of the most frequent letter."""
    count = train + test
    letter = torch.from_numpy(rng.integers(letters, size=(count, 1)))
    filler = torch.from_numpy(rng.integers(letters, letters + fillers, size=(count, length - 1)))
    inputs = torch.cat([letter, filler], 1)  # (N, T)
    targets = torch.full_like(inputs, -1)
    targets[:, -1] = inputs[:, 0]
    return Dataset(
        split_samples(inputs, targets, train),
        size_in=letters + fillers,
        size_out=letters,
        chance=majority_chance(targets[:train], targets[train:], letters),
    )


def attainable(reads: Reads, *, length: int, letters: int, **_: Any) -> float:
    """Everything, or, where the last token does not read the first, one of the letters."""
    return 1.0 if 0 in reads(length)[-1] else 1 / letters
