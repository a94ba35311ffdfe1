"""Make the features of models.

A number becomes its rank among the training networks, so that scale and outliers do not matter, and the square of that rank, so that the
best value may be in the middle. A missing number becomes the median, with a mark. A part of the architecture becomes one column for each
component of the training networks, and each of these columns times the rank of the depth.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Names = NDArray[np.str_]


def features(train: Array, test: Array) -> tuple[Array, Array]:
    """Return features (n, 3 p) of columns (n, p), for training and other networks. Nothing is learned from the other networks."""
    ranked = [rank_columns(*pair) for pair in zip(train.T, test.T)]
    if not ranked:
        return np.empty((len(train), 0)), np.empty((len(test), 0))
    return np.hstack([train_columns for train_columns, _ in ranked]), np.hstack([other for _, other in ranked])


def encode_parts(train: Names, test: Names, depth: Array, test_depth: Array) -> tuple[Array, Array]:
    """Encode names of components (n, p), with the depths (n,), as columns of zeros and ones, and these times the rank of the depth. A
    component that no training network has is zero in all columns of its part."""
    known = [np.unique(column) for column in train.T]
    rank, test_rank = rank_columns(depth, test_depth)
    encoded = []
    for names, depth_rank in ((train, rank), (test, test_rank)):
        has = np.hstack([column[:, None] == component for column, component in zip(names.T, known)]).astype(float)
        encoded.append(np.hstack([has, has * depth_rank[:, :1]]))
    return encoded[0], encoded[1]


def rank_columns(train: Array, test: Array) -> tuple[Array, Array]:
    """Return the features (n, 3) of one column, for training and other networks."""
    known = np.sort(train[np.isfinite(train)])
    return rank_values(train, known), rank_values(test, known)


def rank_values(values: Array, known: Array) -> Array:
    """Return (n, 3): the rank in [-1, 1] among the known numbers, where ties have the middle rank; its square about its mean; and a mark of
    missing numbers."""
    missing = ~np.isfinite(values)
    if not len(known):
        return np.column_stack([np.zeros((len(values), 2)), missing.astype(float)])
    filled = np.where(missing, np.median(known), values)
    below, upto = np.searchsorted(known, filled, "left"), np.searchsorted(known, filled, "right")
    rank = np.where(missing, 0.0, (below + upto) / len(known) - 1)
    return np.column_stack([rank, np.where(missing, 0.0, rank**2 - 1 / 3), missing.astype(float)])
