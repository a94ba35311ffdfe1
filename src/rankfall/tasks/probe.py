"""The probe: predict the positions 1, ..., n from one symbol n times (Su 2022).

All samples are alike, so only the network itself can distinguish positions. It is trained at `length` N, or at any length up to N if the
objective cuts samples (`train/objectives/prefixes.py`), and tested at N and at `lengths`. Answers are classes, the positions up to N. In
a longer sequence only these have targets, since training has no answer for the others.
"""

import numpy as np
import torch

from rankfall.tasks._dataset import TEST, TRAIN, Dataset, Split

INPUTS = "tokens"
TARGETS = "classes"
OVERLAP = "all samples are alike"
SEQUENCES = "equal tokens"
SEEDED = False
LENGTHS = ("lengths",)
LIMITS = {"train": (1, None), "length": (2, None), "lengths": (1, None)}


def probe(
    rng: np.random.Generator, *, train: int = 20, length: int = 16, lengths: list[int] = [8, 12, 24, 32]
) -> Dataset:
    """Return samples that are all alike. Chance is the accuracy of one answer for all positions.

    `train`: samples per epoch, which with a batch of one is the number of steps.
    """
    sizes = {TRAIN: (train, length), TEST: (1, length)} | {f"length {n}": (1, n) for n in lengths if n != length}
    splits = {name: equal_tokens(samples, n, length) for name, (samples, n) in sizes.items()}
    return Dataset(splits, size_in=1, size_out=length, chance=1 / length)


def equal_tokens(samples: int, n: int, trained: int) -> Split:
    """Return samples of n times symbol 0 with targets 0, 1, ..., and without a target from position `trained` on."""
    places = torch.arange(n)
    answers = torch.where(places < trained, places, -1)
    return Split(torch.zeros(samples, n, dtype=torch.int64), answers.repeat(samples, 1))
