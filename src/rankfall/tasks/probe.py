"""The probe: one symbol n times in, the places 1, ..., n out (Su 2022).

All samples are alike, so nothing but the network itself can tell places apart. It is trained at `length` N, or at any length up to it where
the objective cuts samples (`train/objectives/prefixes.py`), and tested at N and at `lengths`. Answers are classes, the places up to N:
of a longer sequence only these are asked, since no answer for the others was ever learned.
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
    """`train`: samples of an epoch; all are alike, so with a batch of one it is the number of steps. Chance: one answer for all places."""
    asked = {TRAIN: (train, length), TEST: (1, length)} | {f"length {n}": (1, n) for n in lengths if n != length}
    splits = {name: equal_tokens(samples, n, length) for name, (samples, n) in asked.items()}
    return Dataset(splits, size_in=1, size_out=length, chance=1 / length)


def equal_tokens(samples: int, n: int, known: int) -> Split:
    """n times symbol 0; the answers are 0, 1, ..., and nothing is asked from `known` on."""
    places = torch.arange(n)
    answers = torch.where(places < known, places, -1)
    return Split(torch.zeros(samples, n, dtype=torch.int64), answers.repeat(samples, 1))
