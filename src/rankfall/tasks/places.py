"""Predict the position of every token: targets 1, 2, ..., n, whatever the tokens are (Luo et al. 2022, position identification).

Classes are counted from 0, and all n positions have a target. The published code has n - 1 targets: that of the first position, 1, is the
padding index of its loss. At `rho` = 1 all tokens of a sequence are identical, and only an attention that distinguishes positions by
itself is better than chance.
"""

import numpy as np
import torch
from torch import Tensor

from rankfall.tasks._dataset import Dataset
from rankfall.tasks._repeats import sequences, splits

INPUTS = "tokens"
TARGETS = "classes"
OVERLAP = "training sequences are drawn anew at every step, and the answers are the places whatever the sequence is"
LIMITS = {
    "train": (1, None),
    "test": (1, None),
    "length": (1, None),
    "symbols": (1, None),
    "rho": (0, 1),
    "repeated": (1, None),
}


class Places:
    """The task with its options. Training sequences are drawn anew at every step, `train` of them per epoch.

    `repeated`: the number of fixed training sequences that are shown again and again instead. `rho`: share of the tokens of a sequence
    that are one symbol (`_repeats.py`).
    """

    def __init__(
        self,
        *,
        train: int = 10000,
        test: int = 1000,
        length: int = 32,
        symbols: int = 10,
        rho: float = 0.0,
        repeated: int | None = None,
    ) -> None:
        self.train, self.test, self.length, self.symbols, self.rho = train, test, length, symbols, rho
        self.repeated = repeated
        self.batch = None if repeated else self.fresh

    def __call__(self, rng: np.random.Generator) -> Dataset:
        """Draw the data set. Chance is the accuracy of one answer for all positions, 1 / n."""
        drawn = splits(lambda n: self.draw(rng, n), answers, self.train, self.test, self.repeated)
        return Dataset(drawn, self.symbols, self.length, chance=1 / self.length)

    def fresh(self, rng: np.random.Generator, samples: int) -> tuple[Tensor, Tensor]:
        inputs = self.draw(rng, samples)
        return inputs, answers(inputs)

    def draw(self, rng: np.random.Generator, samples: int) -> Tensor:
        return sequences(rng, samples, self.length, self.symbols, self.rho)


def answers(inputs: Tensor) -> Tensor:
    """Return the targets (N, T): 0 .. n - 1 in every row."""
    return torch.arange(inputs.shape[1]).repeat(len(inputs), 1)
