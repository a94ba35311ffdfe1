"""Guards means over a part of the targets: a metric is divided by its own count, everything else by that of all targets."""

import pytest
import torch

from rankfall.train.loop import TrainingHistory, means, sums_of
from rankfall.train.objectives._base import Graded

FIRST = Graded(torch.tensor([2.0]), torch.tensor([8]), {"accuracy": torch.tensor([4]), "accuracy_part": torch.tensor([1])},
               {"accuracy_part": torch.tensor([2])})  # fmt: skip
SECOND = Graded(torch.tensor([1.0]), torch.tensor([8]), {"accuracy": torch.tensor([8]), "accuracy_part": torch.tensor([6])},
                {"accuracy_part": torch.tensor([6])})  # fmt: skip


def test_a_metric_over_a_part_has_its_own_count() -> None:
    history, running = TrainingHistory(1, 2, torch.device("cpu")), torch.tensor([True])
    for graded in (FIRST, SECOND):
        history.add("test", 1, sums_of(graded), running)
    assert float(history.mean("test", "accuracy_part", 1)) == pytest.approx(7 / 8)
    assert float(history.mean("test", "accuracy", 1)) == pytest.approx(12 / 16)
    assert list(means(history.tensors, 0)) == [
        (2, "test", "loss", 1.5), (2, "test", "accuracy", 0.75), (2, "test", "accuracy_part", 0.875),
    ]  # fmt: skip
