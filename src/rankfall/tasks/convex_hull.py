"""Which of a handful of points in the plane are corners of their convex hull? (Dong et al. 2021, section 4)

Published sizes: 10 points, uniform in a square of side 10 that is moved as a whole by a normal shift with deviation 3.3 along each
axis. The labels do not change when all points are moved, turned, stretched or put in another order.
"""

from typing import Any

import numpy as np
import torch

from rankfall.tasks._dataset import Dataset, Reads, majority_chance, split_samples

INPUTS = "vectors"
TARGETS = "classes"
LIMITS = {"train": (1, None), "test": (1, None), "points": (1, None), "shift": (0, None)}
FLAT = 1e-9  # angles closer than this to a straight line count as straight: no corner


def convex_hull(
    rng: np.random.Generator,
    *,
    train: int = 10000,
    test: int = 300,
    points: int = 10,
    side: float = 10.0,
    shift: float = 3.3,
) -> Dataset:
    """Class 1: a corner. Of 10 points 59.6% are, so a guess is worth that much and not one half."""
    samples = train + test
    inputs = rng.uniform(0.0, side, (samples, points, 2)) + rng.normal(0.0, shift, (samples, 1, 2))  # (N, T, 2)
    # Rounded before they are labelled: the labels are those of the points that a float32 network sees.
    inputs = inputs.astype(np.float32)
    targets = torch.from_numpy(corners(inputs.astype(np.float64)).astype(np.int64))  # (N, T)
    values = torch.from_numpy(inputs)
    return Dataset(
        split_samples(values, targets, train),
        size_in=2,
        size_out=2,
        chance=majority_chance(targets[:train], targets[train:], 2),
    )


def corners(points: np.ndarray) -> np.ndarray:
    """(..., T, 2) -> (..., T): a point is a corner exactly when it sees all others within less than half a turn.

    A point on an edge sees its neighbours half a turn apart and is none. Points must be distinct.
    """
    count = points.shape[-2]
    if count < 3:
        return np.ones(points.shape[:-1], dtype=bool)
    others = np.array([[j for j in range(count) if j != i] for i in range(count)])  # (T, T-1)
    rays = points[..., others, :] - points[..., :, None, :]  # (..., T, T-1, 2)
    angles = np.sort(np.arctan2(rays[..., 1], rays[..., 0]), axis=-1)
    turned = np.concatenate([angles[..., 1:], angles[..., :1] + 2 * np.pi], axis=-1)
    return (turned - angles).max(-1) > np.pi + FLAT  # the widest gap in which nothing is seen


def attainable(reads: Reads, *, points: int, **_: Any) -> float | str:
    """Known where every point reads all others."""
    if all(len(read) == points for read in reads(points)):
        return 1.0
    return "how likely a point is a corner of points that it does not read has no closed form here"
