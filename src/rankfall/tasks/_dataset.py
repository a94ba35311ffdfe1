"""Data sets of tasks: splits to train and test on, and the accuracy of guessing on them.

A task is a function `f(rng, *, options)` to a `Dataset`. Its data are drawn once a seed; where the file says `SEEDED = False` they do
not depend on the seed, and are made and loaded once for all. A task whose samples never end (`ONLINE = True`) is a class: made from its
options, called with a generator for the data set, whose `train` split then is a sample of what it trains on, as large as an epoch;
and `batch(rng, samples)` draws inputs and targets, anew for every seed and step. It is None where the options ask for samples that end.

A mask may hide what an answer needs. A function `attainable(reads, *, options)` in the task's file returns the best accuracy that can be
expected of answers which are any function of their place and of the tokens that `reads` names for it (`position/attainable.py`), or a
text that says why this is not known.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from rankfall.streams import stream

TRAIN, TEST = "train", "test"


@dataclass(frozen=True)
class Split:
    inputs: Tensor  # (N, T) of symbols, or (N, T, C) of vectors; T may differ between splits
    targets: (
        Tensor  # (N, T) of classes, -1 where nothing is asked, or (N, T, C) of values; the inputs where they are hidden
    )


@dataclass(frozen=True)
class Splits:
    splits: Mapping[str, Split]  # train, test, and any others that the task names

    @property
    def train(self) -> Split:
        return self.splits[TRAIN]

    @property
    def test(self) -> Split:
        return self.splits[TEST]


@dataclass(frozen=True)
class Dataset(Splits):
    size_in: int  # symbols, or channels of a vector
    size_out: int  # classes, or channels of a value
    chance: float = math.nan  # accuracy on the test set of the best predictor that never sees an input
    special: int = 0  # the first so many symbols stand for no word; the last of them is what hides one
    constant: int | None = (
        None  # the class that is the answer at some places whatever the input is; accuracy on it is told apart
    )

    @property
    def length(self) -> int:
        """Tokens of a sample in training."""
        return self.train.inputs.shape[1]

    def count_seen(self) -> int:
        """Return how many test samples are training samples: a network may know their answers by heart."""
        known, asked = ({row.tobytes() for row in split.inputs.numpy()} for split in (self.train, self.test))
        shared = known & asked
        return sum(row.tobytes() in shared for row in self.test.inputs.numpy())


class DrawnTask(Protocol):
    """A task with its options bound."""

    def __call__(self, rng: np.random.Generator) -> Dataset: ...


def split_samples(inputs: Tensor, targets: Tensor, train: int) -> dict[str, Split]:
    """The first samples to train on, the others to test on."""
    return {
        TRAIN: Split(inputs[:train], targets[:train]),
        TEST: Split(inputs[train:], targets[train:]),
    }


def majority_chance(train_targets: Tensor, test_targets: Tensor, classes: int) -> float:
    """Accuracy on the test set of the most frequent training class at each position."""
    counts = torch.stack([(train_targets == c).sum(0) for c in range(classes)])  # (C, T)
    asked = test_targets != -1
    return ((test_targets == counts.argmax(0)) & asked).sum().item() / asked.sum().item()


# Of a sequence of some length, place -> the places whose tokens the answer there can depend on.
Reads = Callable[[int], list[frozenset[int]]]


def draw(task: DrawnTask, seed: int | None) -> Dataset:
    """The data set of a seed, or the one of all seeds."""
    return task(stream(seed or 0, "data"))


def draw_fresh(task: Any, seed: int, step: int, samples: int) -> Split:
    """What a task without end gives a seed to train on at a step."""
    inputs, targets = task.batch(stream(seed, "batch", step), samples)
    return Split(inputs, targets)
