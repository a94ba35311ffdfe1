"""Features of models. A number becomes its rank among the training networks, so that no scale and no outlier matters, and the square of
that rank, so that it may be best in the middle; a missing number is the median, with a mark. A part of the architecture becomes one column
for each component that the training networks have, and each of these columns times the rank of the depth.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Names = NDArray[np.str_]


def features(train: Array, test: Array) -> tuple[Array, Array]:
    """Columns (n, p) to features (n, 3 p) of networks to learn from and of others; nothing is learned from the others."""
    made = [of_column(*pair) for pair in zip(train.T, test.T)]
    if not made:
        return np.empty((len(train), 0)), np.empty((len(test), 0))
    return np.hstack([one for one, _ in made]), np.hstack([other for _, other in made])


def encode_parts(train: Names, test: Names, depth: Array, test_depth: Array) -> tuple[Array, Array]:
    """Names of components (n, p), with the depths (n,), to columns of zeros and ones, and these times the rank of the depth; a component
    that no training network has is zero in all columns of its part."""
    known = [np.unique(column) for column in train.T]
    rank, test_rank = of_column(depth, test_depth)
    made = []
    for names, by in ((train, rank), (test, test_rank)):
        has = np.hstack([column[:, None] == each for column, each in zip(names.T, known)]).astype(float)
        made.append(np.hstack([has, has * by[:, :1]]))
    return made[0], made[1]


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
