"""Data sets of tasks: splits for training and testing, and the accuracy of guessing on them.

A task is a function `f(rng, *, options)` that returns a `Dataset`. Its data are drawn once per seed. With `SEEDED = False` in its file they
do not depend on the seed, and are drawn and loaded once. A task with an endless supply of samples (`ONLINE = True`) is a class that takes
the options. Calling it with a generator returns the data set, whose `train` split is a sample of the training data as large as an epoch.
Its `batch(rng, samples)` draws inputs and targets anew for every seed and step; `batch` is None if the options ask for a fixed set.

A mask may hide tokens that an answer needs. A function `attainable(reads, *, options)` in the task's file returns the best expected
accuracy of answers that are any function of their position and of the tokens that `reads` lists for it (`position/attainable.py`), or a
text that says why it is not known.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from rankfall.random_streams import stream

TRAIN, TEST = "train", "test"


@dataclass(frozen=True)
class Split:
    """Samples with their targets."""

    inputs: Tensor  # symbols (N, T), or vectors (N, T, C); T may differ between splits
    # classes (N, T), -1 for tokens without a target, or values (N, T, C); the inputs themselves if the objective hides tokens
    targets: Tensor


@dataclass(frozen=True)
class Splits:
    """The splits of a task by name."""

    splits: Mapping[str, Split]  # train, test, and further splits of the task

    @property
    def train(self) -> Split:
        return self.splits[TRAIN]

    @property
    def test(self) -> Split:
        return self.splits[TEST]


@dataclass(frozen=True)
class Dataset(Splits):
    """A data set with its sizes and the accuracy of guessing."""

    size_in: int  # symbols, or channels of a vector
    size_out: int  # classes, or channels of a value
    chance: float = math.nan  # accuracy on the test set of the best predictor that never sees an input
    special: int = 0  # number of special symbols, which come first; the last of them hides a word
    # the class that is the answer at some positions for every input; its accuracy is reported separately
    constant: int | None = None

    @property
    def length(self) -> int:
        """Number of tokens of a training sample."""
        return self.train.inputs.shape[1]

    def count_seen(self) -> int:
        """Return how many test samples are also training samples, whose answers a network may have memorised."""
        train, test = ({row.tobytes() for row in split.inputs.numpy()} for split in (self.train, self.test))
        shared = train & test
        return sum(row.tobytes() in shared for row in self.test.inputs.numpy())


class DrawnTask(Protocol):
    """A task with its options bound."""

    def __call__(self, rng: np.random.Generator) -> Dataset: ...


def split_samples(inputs: Tensor, targets: Tensor, train: int) -> dict[str, Split]:
    """Split samples: the first `train` for training, the others for testing."""
    return {
        TRAIN: Split(inputs[:train], targets[:train]),
        TEST: Split(inputs[train:], targets[train:]),
    }


def classified(inputs: Tensor, targets: Tensor, train: int, size_in: int, size_out: int) -> Dataset:
    """Return samples with classes as targets, the first `train` for training. Chance is that of `majority_chance`."""
    chance = majority_chance(targets[:train], targets[train:], size_out)
    return Dataset(split_samples(inputs, targets, train), size_in, size_out, chance)


def majority_chance(train_targets: Tensor, test_targets: Tensor, classes: int) -> float:
    """Return the accuracy on the test set of the most frequent training class at each position."""
    counts = torch.stack([(train_targets == c).sum(0) for c in range(classes)])  # (C, T)
    has_target = test_targets != -1
    return ((test_targets == counts.argmax(0)) & has_target).sum().item() / has_target.sum().item()


# From a sequence length to a list: for each position, the positions of the tokens on which its answer may depend.
Reads = Callable[[int], list[frozenset[int]]]


def draw(task: DrawnTask, seed: int | None) -> Dataset:
    """Draw the data set of a seed, or the data set that all seeds share."""
    return task(stream(seed or 0, "data"))


def draw_fresh(task: Any, seed: int, step: int, samples: int) -> Split:
    """Draw the training samples of an online task for a seed and step."""
    inputs, targets = task.batch(stream(seed, "batch", step), samples)
    return Split(inputs, targets)
