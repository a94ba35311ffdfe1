"""Two points opposite each other on a circle: predict the next position of each (Dong et al. 2021, section 4, figure 3).

A trained network is then applied to its own output, step after step (`rank/circle/measure.py`). There are three ways to combine the input
and output of a step, and the data must match:

    none        x <- f(x)        f learns the next point
    step        x <- x + f(x)    f learns the displacement to the next point: the skip connection, in training as in use
    published   x <- x + f(x)    f learns the next point, from its input plus the input of the batch before

The published script does the last: in training it adds the previous minibatch instead of a skip connection, and nothing to the first
batch of an epoch. Its picture shows f(x), not x. Since its data have a fixed order, this too depends only on the data: train with
`shuffle: false` and the same batch size as the `batch` here.
"""

import math
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from rankfall.errors import RankfallError
from rankfall.tasks._dataset import Dataset, Split

INPUTS = "vectors"
TARGETS = "values"
SEEDED = False
TOKENS = 2  # for any value of `points`
LIMITS = {"points": (2, None), "batch": (1, None)}


def circle(
    rng: np.random.Generator,
    *,
    points: int = 1000,
    radius: float = 0.3,
    skip: Literal["none", "step", "published"] = "none",
    antipodal: bool = True,
    batch: int = 30,
) -> Dataset:
    """Return the pairs (i, i + points/2) of all points, and the pairs turned by half a step as the test set.

    `antipodal: false` gives the published 499 pairs (i, i + 499), half a turn less one step apart. The data are not random: seeds differ
    only in the networks. The targets are values, so there is no accuracy of guessing and no chance level.
    """
    if points % 2:
        raise RankfallError(f"circle: points is {points}, but pairs of opposite points need an even number")
    start = torch.arange(points if antipodal else points // 2 - 1)  # N
    apart = points // 2 if antipodal else points // 2 - 1
    train_inputs, train_targets = pairs(start.double(), apart, points, radius, skip)
    test_inputs, test_targets = pairs(start.double() + 0.5, apart, points, radius, skip)
    if skip == "published":
        train_inputs, test_inputs = with_previous(train_inputs, batch), with_previous(test_inputs, batch)
    return Dataset(
        {
            "train": Split(train_inputs.float(), train_targets.float()),
            "test": Split(test_inputs.float(), test_targets.float()),
        },
        size_in=2,
        size_out=2,
    )


def point_at(step: Tensor, points: int, radius: float) -> Tensor:
    """Return the points (..., 2) at steps (...) along the circle. Step 0 is (radius, 0)."""
    angle = step.double() * (2 * math.pi / points)
    return radius * torch.stack([angle.cos(), angle.sin()], -1)


def pairs(start: Tensor, apart: int, points: int, radius: float, skip: str) -> tuple[Tensor, Tensor]:
    """Return inputs and targets (N, 2, 2) for the steps (N,) of the first token."""
    steps = torch.stack([start, start + apart], 1)  # (N, T)
    present, following = point_at(steps, points, radius), point_at(steps + 1, points, radius)
    return present, following - present if skip == "step" else following


def with_previous(inputs: Tensor, batch: int) -> Tensor:
    """Add to each sample the sample at the same index of the previous batch. The first batch stays the same."""
    earlier = torch.zeros_like(inputs)
    earlier[batch:] = inputs[:-batch]
    return inputs + earlier


def advance(state: Tensor, output: Tensor, skip: str) -> tuple[Tensor, Tensor]:
    """Take one step of the roll-out: return the network's next input and the point to draw."""
    if skip == "none":
        return output, output
    after = state + output
    return after, after if skip == "step" else output
