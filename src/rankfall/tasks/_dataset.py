"""What a task makes: inputs and targets for training and test, and what a guess is worth on them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rankfall.streams import stream


@dataclass(frozen=True)
class Dataset:
    train_inputs: Tensor  # (N, T) of symbols, or (N, T, C) of vectors
    train_targets: Tensor  # (N, T) of classes, -1 where nothing is asked, or (N, T, C) of values
    test_inputs: Tensor
    test_targets: Tensor
    size_in: int  # symbols, or channels of a vector
    size_out: int  # classes, or channels of a value
    chance: float  # accuracy on the test set of the best predictor that never sees an input

    @property
    def length(self) -> int:
        return self.train_inputs.shape[1]


def majority_chance(train_targets: Tensor, test_targets: Tensor, classes: int) -> float:
    """Accuracy on the test set of the most frequent training class at each position."""
    counts = torch.stack([(train_targets == c).sum(0) for c in range(classes)])  # (C, T)
    asked = test_targets != -1
    return ((test_targets == counts.argmax(0)) & asked).sum().item() / asked.sum().item()


def draw(task: "Callable[..., Dataset]", seed: int, options: dict[str, Any]) -> Dataset:
    """The data set of a seed."""
    return task(stream(seed, "data"), **options)
