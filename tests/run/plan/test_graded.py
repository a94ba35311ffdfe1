"""Guards that what the plan says of the course of training is what is graded: for every task and objective of this package."""

import math
from typing import Any

import pytest
import torch

from rankfall import components
from rankfall.design import Component, Task, Training
from rankfall.run.config.options import resolve
from rankfall.run.jobs.training import select_splits
from rankfall.run.plan.graded import METRICS, MORE, PLAIN, graded_pairs
from rankfall.tasks._dataset import Dataset, draw
from rankfall.train.loop import is_count, sums_of
from rankfall.train.objectives._base import Samples

SMALL: dict[str, list[dict[str, Any]]] = {
    "masked_text": [
        {"train": 8, "test": 4, "length": 16, "longer": longer, "vocabulary": 200} for longer in (None, 32)
    ],
    "probe": [{"length": 4, "lengths": [3, 4, 6]}],
    "circle": [{}],
}
TARGETS = {"circle": ["values"], "masked_text": ["masked_tokens"]}


class Answers(torch.nn.Module):
    """Says nothing of the input, in the form that the task asks for."""

    def __init__(self, data: Dataset) -> None:
        super().__init__()
        self.size = data.size_out

    def forward(self, inputs: torch.Tensor, drop: Any = None) -> torch.Tensor:
        return torch.zeros(*inputs.shape[:3], self.size)

    features = forward

    def head(self, features: torch.Tensor) -> torch.Tensor:
        return features


def test_every_task_and_objective_is_known() -> None:
    assert {*MORE, *PLAIN} == {*components.names("task")}
    assert METRICS.keys() == {*components.names("objective")} - {"auto"}


@pytest.mark.parametrize("name", sorted({*MORE, *PLAIN}))
def test_it_is_what_is_graded(name: str) -> None:
    for options in SMALL.get(name, [{"train": 8, "test": 4}]):
        task = resolve("task", Component(name, options), "")
        data = draw(components.bound("task", task), 0)
        for objective in TARGETS.get(name, ["classes", "prefixes"]):
            for epochs in (0, 3):
                found = graded_pairs(Task(name, task), Training("one", objective=Component(objective), epochs=epochs))
                assert found is not None
                assert found == [
                    (split, metric)
                    for split in select_splits(data.splits, epochs)
                    for metric in graded(data, split, objective)
                ]


def graded(data: Dataset, split: str, objective: str) -> list[str]:
    some = data.splits[split]
    about = {"size_in": data.size_in, "special": data.special, "constant": data.constant}
    batch = Samples(some.inputs[None], some.targets[None], [0], (split, 0), **about)
    sums = sums_of(components.load("objective", objective)(Answers(data), batch))
    assert math.isfinite(float(sums["loss"]))
    return [metric for metric in sums if not is_count(metric)]
