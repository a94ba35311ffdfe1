"""Say which tokens stand at the even places: targets (w_2, w_4, ..., w_n, EOS, ..., EOS) of tokens (w_1, ..., w_n) (Luo et al. 2022,
even token prediction).

The second half of the targets is the constant EOS, so half of the accuracy means nothing: a network without positions has it too.
Accuracy on the first half (`accuracy_informative`) and on the second (`accuracy_constant`) are reported apart.
"""

import numpy as np
import torch
from torch import Tensor

from rankfall.tasks._dataset import Dataset
from rankfall.tasks._repeats import sequences, splits

INPUTS = "tokens"
TARGETS = "classes"
LIMITS = {
    "train": (1, None),
    "test": (1, None),
    "length": (2, None),
    "symbols": (1, None),
    "rho": (0, 1),
    "repeated": (1, None),
}


class EvenTokens:
    """Options as those of `places`. EOS is the class after the last symbol."""

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
        """Chance is that of EOS everywhere: no answer that ignores the place is better, even if it sees all tokens, for no symbol is
        asked for at more than half of the places."""
        chance = (self.length - self.length // 2) / self.length
        made = splits(lambda n: self.draw(rng, n), self.answers, self.train, self.test, self.repeated)
        return Dataset(made, self.symbols, self.symbols + 1, chance=chance, constant=self.symbols)

    def fresh(self, rng: np.random.Generator, samples: int) -> tuple[Tensor, Tensor]:
        inputs = self.draw(rng, samples)
        return inputs, self.answers(inputs)

    def draw(self, rng: np.random.Generator, samples: int) -> Tensor:
        return sequences(rng, samples, self.length, self.symbols, self.rho)

    def answers(self, inputs: Tensor) -> Tensor:
        """(N, T)"""
        even = inputs[:, 1::2]
        return torch.cat([even, torch.full((len(even), self.length - even.shape[1]), self.symbols)], 1)
