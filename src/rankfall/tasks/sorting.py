"""Sort a sequence of symbols: token i of the output is the i-th smallest symbol of the input (Dong et al. 2021, section 4)."""

from functools import cache
from typing import Any

import numpy as np
import torch

from rankfall.tasks._dataset import Dataset, Reads, majority_chance, split_samples

INPUTS = "tokens"
TARGETS = "classes"
LIMITS = {"train": (1, None), "test": (1, None), "length": (1, None), "symbols": (1, None)}
MOST = 3e10  # operations of the exact sum, about ten seconds


def sorting(
    rng: np.random.Generator, *, train: int = 1000, test: int = 200, length: int = 8, symbols: int = 10
) -> Dataset:
    """Draw uniform and independent symbols. The position alone already gives an accuracy of 0.34 at length 8, not 1 / symbols, since
    small symbols are likely in front.
    """
    inputs = torch.from_numpy(rng.integers(symbols, size=(train + test, length)))  # (N, T)
    targets = inputs.sort(1).values
    return Dataset(
        split_samples(inputs, targets, train),
        size_in=symbols,
        size_out=symbols,
        chance=majority_chance(targets[:train], targets[train:], symbols),
    )


def attainable(reads: Reads, *, length: int, symbols: int, **_: Any) -> float | str:
    """Return the best expected accuracy. Tokens are exchangeable, so only the number of tokens that a position reads counts."""
    known = [len(tokens) for tokens in reads(length)]
    if sum((symbols * count**2) ** 2 for count in known if count < length) * length / 4 > MOST:
        return f"there are too many cases to add up at length {length} with {symbols} symbols"
    return sum(expected_share(place, count, length, symbols) for place, count in enumerate(known)) / length


@cache
def expected_share(place: int, known: int, length: int, symbols: int) -> float:
    """Return E[max_y P(y | known)]: how often the likeliest answer at a position (from 0) is right if `known` tokens are read.

    Let c(y) count the read tokens that are at most y. The answer is at most y if at least place + 1 - c(y) of the other tokens are at most
    y, and their number is binomial. So P(y | known) = F(y, c(y)) - F(y - 1, c(y - 1)), and c is a Markov chain in y. P(all of these <= v)
    is carried along the chain for every value v that they take, and the sum over v of v times its probability is the expectation.
    """
    if known == length:
        return 1.0
    counts = np.arange(known + 1)
    at_most = [np.zeros(known + 1)] + [
        reach_count(length - known, (y + 1) / symbols, place + 1 - counts) for y in range(symbols)
    ]
    later, earlier = np.meshgrid(counts, counts)  # c(y) in columns, c(y - 1) in rows
    steps = [np.where(later >= earlier, at_most[y + 1] - at_most[y][:, None], 0.0) for y in range(symbols)]
    values, index = np.unique(np.round(np.stack(steps), 12), return_inverse=True)
    ranks = index.reshape(symbols, known + 1, known + 1)
    below = np.zeros((len(values), known + 1))  # (V, c): P(c(y) = c, and no step above the value so far)
    below[:, 0] = 1.0
    for y in range(symbols):
        moved = np.zeros_like(below)
        for before in range(known + 1):
            chances = binomial(known - before, 1 / (symbols - y))  # of the increase of the count
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
    """Return P(count), 0 .. tokens."""
    found = np.ones(1)
    for _ in range(tokens):
        found = np.convolve(found, [1 - chance, chance])
    return found
