"""Predict the position of every token: targets 1, 2, ..., n, whatever the tokens are (Luo et al. 2022, position identification).

Classes are counted from 0, and all n positions have a target. The published code has n - 1 targets: that of the first position, 1, is the
padding index of its loss. At `rho` = 1 all tokens of a sequence are identical, and only an attention that distinguishes positions by
itself is better than chance.

A share `rho` of the tokens of a sequence is one symbol: from independent tokens (0) to identical ones (1). Exactly floor(rho n + 1/2) of n
tokens, at random positions, take the common symbol of their sequence. Symbols are uniform and independent. The share is exact and not a
probability, so every sequence with rho < 1 - 1/(2n) has a token that is drawn separately. Only at rho = 1 are all sequences those on which
relative positions fail (Luo et al. 2022, theorem 2). Positions are exchangeable at any rho, so a network without positions learns nothing
about them. Sequences of one generator at two values of rho agree at each position that is common in both or in neither.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from rankfall.errors import RankfallError
from rankfall.repeats import count_common
from rankfall.tasks._dataset import Dataset, Split, split_samples


def sequences(rng: np.random.Generator, samples: int, length: int, symbols: int, rho: float) -> Tensor:
    """Draw sequences of symbols, (N, T)."""
    drawn = rng.integers(symbols, size=(samples, length))
    common = rng.integers(symbols, size=(samples, 1))
    count = count_common(length, rho)
    if 0 < count < length:
        rank = rng.random((samples, length)).argsort(1).argsort(1)  # a random permutation of the positions
        drawn = np.where(rank < count, common, drawn)
    return torch.from_numpy(drawn if count < length else common.repeat(length, 1))


def splits(
    draw: Callable[[int], Tensor], answers: Callable[[Tensor], Tensor], train: int, test: int, repeated: int | None
) -> dict[str, Split]:
    """Draw training and test sequences with their answers.

    `repeated`: the number of different training sequences, which repeat equally often up to one.
    """
    if repeated is not None and repeated > train:
        raise RankfallError(
            f"repeated: {repeated} different sequences, but an epoch shows {train}; raise `train` to as many, or lower `repeated`"
        )
    inputs = draw((repeated or train) + test)  # (N, T)
    training, testing = inputs[:-test], inputs[-test:]
    inputs = torch.cat([training[torch.arange(train) % len(training)], testing])
    return split_samples(inputs, answers(inputs), train)


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
    that are one symbol.
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
        drawn = splits(lambda n: self.draw(rng, n), self.answers, self.train, self.test, self.repeated)
        return Dataset(drawn, self.symbols, self.length, chance=1 / self.length)

    def fresh(self, rng: np.random.Generator, samples: int) -> tuple[Tensor, Tensor]:
        inputs = self.draw(rng, samples)
        return inputs, self.answers(inputs)

    def draw(self, rng: np.random.Generator, samples: int) -> Tensor:
        return sequences(rng, samples, self.length, self.symbols, self.rho)

    def answers(self, inputs: Tensor) -> Tensor:
        """Return the targets (N, T): 0 .. n - 1 in every row."""
        return torch.arange(inputs.shape[1]).repeat(len(inputs), 1)
