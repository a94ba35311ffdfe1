"""Predict the tokens at the even positions: targets (w_2, w_4, ..., w_n, EOS, ..., EOS) of tokens (w_1, ..., w_n) (Luo et al. 2022,
even token prediction).

The second half of the targets is the constant EOS, so half of the accuracy has no meaning: a network without positions reaches it too.
Accuracy on the first half (`accuracy_informative`) and on the second (`accuracy_constant`) are reported separately.
"""

from math import comb
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rankfall.repeats import count_common, count_maxima
from rankfall.tasks._dataset import Dataset, Reads
from rankfall.tasks.places import LIMITS as OF_PLACES
from rankfall.tasks.places import Places, splits

INPUTS = "tokens"
TARGETS = "classes"
OVERLAP = "training sequences are drawn anew at every step"
LIMITS = {**OF_PLACES, "length": (2, None)}


class EvenTokens(Places):
    """The task, with the options of `places`. EOS is the class after the last symbol."""

    def __call__(self, rng: np.random.Generator) -> Dataset:
        """Draw the data set. Chance is the accuracy of EOS everywhere.

        No answer that ignores the position is better, even one that reads all tokens, since no symbol is the target at more than half of
        the positions.
        """
        chance = (self.length - self.length // 2) / self.length
        drawn = splits(lambda n: self.draw(rng, n), self.answers, self.train, self.test, self.repeated)
        return Dataset(drawn, self.symbols, self.symbols + 1, chance=chance, constant=self.symbols)

    def answers(self, inputs: Tensor) -> Tensor:
        """Return the targets (N, T)."""
        even = inputs[:, 1::2]
        return torch.cat([even, torch.full((len(even), self.length - even.shape[1]), self.symbols)], 1)


def attainable(reads: Reads, *, length: int, symbols: int, rho: float, **_: Any) -> float:
    """Return the best expected accuracy: 1 where the target token is read, else what the read tokens say about the common symbol."""
    count, common = length // 2, count_common(length, rho)
    shares = [
        1.0 if 2 * place + 1 in read else expected_share(len(read), length, symbols, common)
        for place, read in enumerate(reads(length)[:count])
    ]
    return (sum(shares) + length - count) / length


def expected_share(read: int, length: int, symbols: int, common: int) -> float:
    """Return how often the likeliest symbol of a token is right if `read` other tokens are read and `common` of all have one symbol.

    With q symbols, the probability of m read tokens with counts k together with a common token of symbol a is
    q^-(m + 1) sum_j q^j C(k_a, j) C(n - m - 1, c - j - 1) / C(n, c), where j of the m are common. It grows with k_a, so the likeliest
    symbol is the most frequent of those read. A token that is not common is uniform, whatever is read.
    """
    unread = length - read - 1  # neither read nor the target
    alone = (length - common) / (length * symbols)

    def weight(count: int) -> float:
        terms = (
            symbols**j * comb(count, j) * comb(unread, common - j - 1) / comb(length, common)
            for j in range(min(count, common - 1) + 1)
        )
        return sum(terms)

    return alone + sum(p * weight(count) for count, p in enumerate(count_maxima(read, symbols))) / symbols
