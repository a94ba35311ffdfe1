"""Decide which points of a small set in the plane are corners of their convex hull (Dong et al. 2021, section 4).

Published sizes: 10 points, uniform in a square of side 10, which is shifted as a whole by a normal draw with deviation 3.3 along each
axis. The labels do not change if all points are shifted, rotated, scaled or reordered.
"""

from typing import Any

import numpy as np
import torch

from rankfall.tasks._dataset import Dataset, Reads, classified

INPUTS = "vectors"
TARGETS = "classes"
LIMITS = {"train": (1, None), "test": (1, None), "points": (1, None), "shift": (0, None)}
FLAT = 1e-9  # radians; an angle closer than this to a straight line is no corner


def convex_hull(
    rng: np.random.Generator,
    *,
    train: int = 10000,
    test: int = 300,
    points: int = 10,
    side: float = 10.0,
    shift: float = 3.3,
) -> Dataset:
    """Return points with class 1 for corners. 59.6% of 10 points are corners, so guessing reaches this accuracy and not one half."""
    samples = train + test
    inputs = rng.uniform(0.0, side, (samples, points, 2)) + rng.normal(0.0, shift, (samples, 1, 2))  # (N, T, 2)
    # Rounded before labelling, so that labels belong to the points that a float32 network reads.
    inputs = inputs.astype(np.float32)
    targets = torch.from_numpy(corners(inputs.astype(np.float64)).astype(np.int64))  # (N, T)
    return classified(torch.from_numpy(inputs), targets, train, 2, 2)


def corners(points: np.ndarray) -> np.ndarray:
    """Return whether points (..., T, 2) are corners, (..., T): a corner sees all other points within less than half a turn.

    A point on an edge sees its neighbours half a turn apart and is no corner. Points must be distinct.
    """
    count = points.shape[-2]
    if count < 3:
        return np.ones(points.shape[:-1], dtype=bool)
    others = np.array([[j for j in range(count) if j != i] for i in range(count)])  # (T, T-1)
    rays = points[..., others, :] - points[..., :, None, :]  # (..., T, T-1, 2)
    angles = np.sort(np.arctan2(rays[..., 1], rays[..., 0]), axis=-1)
    turned = np.concatenate([angles[..., 1:], angles[..., :1] + 2 * np.pi], axis=-1)
    return (turned - angles).max(-1) > np.pi + FLAT  # the widest angle without another point


def attainable(reads: Reads, *, points: int, **_: Any) -> float | str:
    """Return 1 if every point reads all others; otherwise the best accuracy is not known."""
    if all(len(read) == points for read in reads(points)):
        return 1.0
    return "how likely a point is a corner of points that it does not read has no closed form here"
