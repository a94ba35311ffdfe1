"""What models are given: ranks among the training networks, so that no scale and no outlier matters, and their squares, so that a number
may be best in the middle; a number that is missing is the median, with a mark.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def features(train: Array, test: Array) -> tuple[Array, Array]:
    """Columns (n, p) to features (n, 3 p) of networks to learn from and of others; nothing is learned from the others."""
    made = [of_column(*pair) for pair in zip(train.T, test.T)]
    if not made:
        return np.empty((len(train), 0)), np.empty((len(test), 0))
    return np.hstack([one for one, _ in made]), np.hstack([other for _, other in made])


def of_column(train: Array, test: Array) -> tuple[Array, Array]:
    known = np.sort(train[np.isfinite(train)])
    return rank_values(train, known), rank_values(test, known)


def rank_values(values: Array, known: Array) -> Array:
    """(n, 3): rank in [-1, 1] among the known numbers, the middle of equal ones; its square about its mean; whether it is missing."""
    missing = ~np.isfinite(values)
    if not len(known):
        return np.column_stack([np.zeros((len(values), 2)), missing.astype(float)])
    filled = np.where(missing, np.median(known), values)
    below, upto = np.searchsorted(known, filled, "left"), np.searchsorted(known, filled, "right")
    rank = np.where(missing, 0.0, (below + upto) / len(known) - 1)
    return np.column_stack([rank, np.where(missing, 0.0, rank**2 - 1 / 3), missing.astype(float)])
