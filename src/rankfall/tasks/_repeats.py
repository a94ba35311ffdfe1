"""Random sequences in which a share `rho` of the tokens is one symbol: from independent tokens (0) to identical ones (1).

Exactly floor(rho n + 1/2) of n tokens, at random positions, take the common symbol of their sequence. Symbols are uniform and
independent. The share is exact and not a probability, so every sequence with rho < 1 - 1/(2n) has a token that is drawn separately. Only
at rho = 1 are all sequences those on which relative positions fail (Luo et al. 2022, theorem 2). Positions are exchangeable at any rho, so
a network without positions learns nothing about them. Sequences of one generator at two values of rho agree at each position that is
common in both or in neither.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from rankfall.errors import RankfallError
from rankfall.tasks._dataset import Split, split_samples


def count_common(length: int, rho: float) -> int:
    """Return how many tokens of a sequence take its common symbol."""
    return math.floor(rho * length + 0.5)


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
