"""Sort a sequence of symbols: token i of the output is the i-th smallest symbol of the input (Dong et al. 2021, section 4)."""

from functools import cache
from typing import Any

import numpy as np
import torch

from rankfall.tasks._dataset import Dataset, Reads, classified

INPUTS = "tokens"
TARGETS = "classes"
LIMITS = {"train": (1, None), "test": (1, None), "length": (1, None), "symbols": (1, None)}
MOST = 3e10  # operations of the exact sum, about ten seconds


def sorting(
    rng: np.random.Generator, *, train: int = 1000, test: int = 200, length: int = 8, symbols: int = 10
) -> Dataset:
    """Draw uniform and independent symbols.

    The position alone gives an accuracy of 0.34 at length 8, not 1 / symbols, since small symbols are likely in front.
    """
    inputs = torch.from_numpy(rng.integers(symbols, size=(train + test, length)))  # (N, T)
    return classified(inputs, inputs.sort(1).values, train, symbols, symbols)


def attainable(reads: Reads, *, length: int, symbols: int, **_: Any) -> float | str:
    """Return the best expected accuracy. Tokens are exchangeable, so only the number of tokens that a position reads counts."""
    counts = [len(tokens) for tokens in reads(length)]
    if sum((symbols * count**2) ** 2 for count in counts if count < length) * length / 4 > MOST:
        return f"there are too many cases to add up at length {length} with {symbols} symbols"
    return sum(expected_share(place, count, length, symbols) for place, count in enumerate(counts)) / length


@cache
def expected_share(place: int, read: int, length: int, symbols: int) -> float:
    """Return E[max_y P(y | read)]: how often the likeliest answer at a position (from 0) is right if `read` tokens are read.

    Let c(y) count the read tokens that are at most y. The answer is at most y if at least place + 1 - c(y) of the other tokens are at most
    y, and their number is binomial. So P(y | read) = F(y, c(y)) - F(y - 1, c(y - 1)), and c is a Markov chain in y. P(all of these <= v)
    is carried along the chain for every value v that they take, and the sum over v of v times its probability is the expectation.
    """
    if read == length:
        return 1.0
    counts = np.arange(read + 1)
    at_most = [np.zeros(read + 1)] + [
        reach_count(length - read, (y + 1) / symbols, place + 1 - counts) for y in range(symbols)
    ]
    later, earlier = np.meshgrid(counts, counts)  # c(y) in columns, c(y - 1) in rows
    steps = [np.where(later >= earlier, at_most[y + 1] - at_most[y][:, None], 0.0) for y in range(symbols)]
    values, index = np.unique(np.round(np.stack(steps), 12), return_inverse=True)
    ranks = index.reshape(symbols, read + 1, read + 1)
    below = np.zeros((len(values), read + 1))  # (V, c): P(c(y) = c, and no step above the value so far)
    below[:, 0] = 1.0
    for y in range(symbols):
        moved = np.zeros_like(below)
        for before in range(read + 1):
            chances = binomial(read - before, 1 / (symbols - y))  # of the increase of the count
            for more, chance in enumerate(chances):
                least = ranks[y, before, before + more]
                moved[least:, before + more] += chance * below[least:, before]
        below = moved
    reached = below.sum(1)
    return float(values @ np.diff(reached, prepend=0.0))


def reach_count(tokens: int, chance: float, least: np.ndarray) -> np.ndarray:
    """Return P(count >= least) of independent tokens with this chance each."""
    tails = np.append(binomial(tokens, chance)[::-1].cumsum()[::-1], 0.0)
    return tails[np.clip(least, 0, tokens + 1)]


def binomial(tokens: int, chance: float) -> np.ndarray:
    """Return the probability of each count, 0 .. tokens."""
    probabilities = np.ones(1)
    for _ in range(tokens):
        probabilities = np.convolve(probabilities, [1 - chance, chance])
    return probabilities
