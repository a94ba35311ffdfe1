"""Random sequences in which a share `rho` of the tokens is one symbol: from independent tokens (0) to identical ones (1).

Of n tokens exactly floor(rho n + 1/2), at random places, take the common symbol of their sequence; symbols are uniform and
independent. The share is exact and no probability, so every sequence with rho < 1 - 1/(2n) has a token that was drawn by itself, and
only at rho = 1 are all sequences those on which relative positions fail (Luo et al. 2022, theorem 2). Places are exchangeable at any
rho, so without positions nothing is known about them. Sequences of one generator at several rho agree wherever both are common, or
neither is.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from rankfall.errors import RankfallError
from rankfall.tasks._dataset import Split, split_samples


def count_common(length: int, rho: float) -> int:
    """Tokens of a sequence that take its common symbol."""
    return math.floor(rho * length + 0.5)


def sequences(rng: np.random.Generator, samples: int, length: int, symbols: int, rho: float) -> Tensor:
    """(N, T) of symbols."""
    own = rng.integers(symbols, size=(samples, length))
    common = rng.integers(symbols, size=(samples, 1))
    count = count_common(length, rho)
    if 0 < count < length:
        rank = rng.random((samples, length)).argsort(1).argsort(1)  # of each place, at random
        own = np.where(rank < count, common, own)
    return torch.from_numpy(own if count < length else common.repeat(length, 1))


def splits(
    draw: Callable[[int], Tensor], answers: Callable[[Tensor], Tensor], train: int, test: int, repeated: int | None
) -> dict[str, Split]:
    """Sequences to train on and to test on, with their answers. `repeated`: the training sequences are only so many different ones,
    each as often as any other, or once more."""
    if repeated is not None and repeated > train:
        raise RankfallError(
            f"repeated: {repeated} different sequences, but an epoch shows {train}; raise `train` to as many, or lower `repeated`"
        )
    inputs = draw((repeated or train) + test)  # (N, T)
    kept, last = inputs[:-test], inputs[-test:]
    inputs = torch.cat([kept[torch.arange(train) % len(kept)], last])
    return split_samples(inputs, answers(inputs), train)
