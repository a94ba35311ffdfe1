"""Guards that `train_many` refuses or names what would go wrong, by each engine, and does what plain PyTorch does at the edges."""

import math
import random
from typing import Any

import numpy as np
import pytest
import torch
from known_modules import KNOWN, Known, cross_entropy, train_alone, vectors
from torch import Tensor, nn
from torch.nn import functional as F

from thousandfold import SGD, Adam, AdamW, EngineError, explain, train_many

SEEDS, STEPS = (3, 4, 9), 5
ENGINES = "program", "stack", "loop"


def linear(seed: int) -> nn.Module:
    return nn.Linear(5, 3).double()


ARGUMENTS: dict[str, Any] = {"build": linear, "loss": cross_entropy, "batches": vectors, "seeds": SEEDS, "steps": STEPS}


def train(**changes: Any) -> Any:
    return train_many(**(ARGUMENTS | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": (4, 3, 9)}, r"the state is of the seeds \[3, 4, 9\]; found \[4, 3, 9\]"),
        ({"seeds": (3, 4)}, "the state has 3 members; found 2 seeds"),
        ({"optimizer": SGD()}, "the state is of the optimiser Adam; found SGD"),
        ({"resume": {}}, "expected the `state` of an earlier result"),
        ({"build": lambda seed: nn.Linear(5, 4).double()}, r"expected weights of the shape \(3, 24\); found \(3, 18\)"),
    ],
)
def test_a_state_of_something_else_is_refused(changes: dict[str, Any], message: str) -> None:
    state = train(steps=2, engine="loop").state
    with pytest.raises(EngineError, match=message) as raised:
        train(engine="loop", **({"resume": state} | changes))
    assert "\n" not in str(raised.value)


def test_members_that_share_a_module_or_a_trained_parameter_are_refused() -> None:
    one = linear(0)
    for build in (lambda seed: one, lambda seed: nn.Sequential(one)):
        with pytest.raises(EngineError, match="a new module for each seed; seeds 3 and 4 share one"):
            train(build=build)


class Unused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(5, 3), nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Any:
        return self.used(x)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_parameter_that_the_loss_does_not_use_is_left(engine: str) -> None:
    known = Known(Unused, cross_entropy, vectors)
    result = train(build=known.build, optimizer=AdamW(lr=1e-2, weight_decay=0.1), engine=engine)
    for k, seed in enumerate(SEEDS):
        make = lambda weights: torch.optim.AdamW(weights, lr=1e-2, weight_decay=0.1)  # noqa: E731
        alone, _ = train_alone(known, seed, STEPS, make)
        for one, other in zip(result.modules[k].parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_a_mask_of_truth_values_keeps_the_program() -> None:
    def loss(module: nn.Module, batch: Any) -> Any:
        x, y, kept = batch
        each = F.cross_entropy(module(x), y, reduction="none")
        return (each * kept).sum() / kept.sum().clamp(min=1)

    def batches(step: int, seed: int) -> Any:
        x, y = vectors(step, seed)
        return x, y, x[:, 0] > 0

    result = train(loss=loss, batches=batches)
    assert result.engine == "program"
    torch.testing.assert_close(result.losses, train(loss=loss, batches=batches, engine="loop").losses)


def lengths(step: int, seed: int) -> Any:
    return tuple(x[:seed] for x in vectors(step, seed))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": 4}, r"a sequence of whole numbers as seeds, such as range\(4\); found 4"),
        ({"optimizer": torch.optim.Adam}, r"such as thousandfold.Adam\(lr=1e-3\); found the class Adam"),
        ({"loss": lambda module, batch: (module(batch[0]).mean(), batch[0])}, "a dictionary of metrics; found Tensor"),
        ({"batches": lengths}, "of the same shapes and formats for all seeds; found .*3, 5.* for seed 3 and .*4, 5"),
        ({"batches": lambda step, seed: ()}, "expected at least one tensor; found none"),
        ({"steps": -1}, "steps as a whole number, not negative; found -1"),
        ({"steps": 2.5}, "steps as a whole number, not negative; found 2.5"),
        ({"optimizer": Adam(lr=-1.0)}, "no negative lr; found -1.0"),
        ({"optimizer": Adam(lr=[0.1, math.nan, 0.1])}, "no negative lr; found"),
        ({"optimizer": Adam(schedule=lambda step: math.nan)}, r"schedule\(0\): expected a finite number; found nan"),
        ({"optimizer": Adam(schedule=lambda step: torch.ones(3))}, r"schedule\(0\): expected a number"),
    ],
)
def test_a_mistake_is_named_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(EngineError, match=message) as raised:
        train(**changes)
    assert "\n" not in str(raised.value)


class OwnGenerator(nn.Module):
    """Draws from a generator of its own, which no engine can set."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.draws = nn.Linear(5, 3), iter(range(1, 1000))

    def __deepcopy__(self, memo: Any) -> "OwnGenerator":
        other = OwnGenerator()
        other.double().load_state_dict(self.state_dict())
        return other

    def forward(self, x: Tensor) -> Any:
        return self.layer(x) * next(self.draws)


def test_the_reasons_of_all_engines_are_named() -> None:
    with pytest.raises(EngineError, match="no engine serves the step: program: .*; stack: .*; loop: .*"):
        train(build=lambda seed: OwnGenerator().double())


def with_metric(module: nn.Module, batch: Any) -> Any:
    return cross_entropy(module, batch), {"size": batch[0].mean()}


@pytest.mark.parametrize("engine", ENGINES)
def test_losses_have_a_row_for_each_step_and_metrics_their_names(engine: str) -> None:
    def batches(step: int, seed: int) -> Any:
        x, y = vectors(step, seed)
        return (x * math.nan if step == 2 else x), y

    result = train(loss=with_metric, batches=batches, engine=engine)
    assert result.diverged == [2, 2, 2]
    assert result.losses.shape == result.metrics["size"].shape == (STEPS, 3)
    none = train(loss=with_metric, steps=0, engine=engine)
    assert none.losses.shape == none.metrics["size"].shape == (0, 3)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_error_in_a_later_step_names_step_and_member(engine: str) -> None:
    def batches(step: int, seed: int) -> Any:
        x, y = vectors(step, seed)
        return x, (y + 5 if (step, seed) == (3, 4) else y)

    with pytest.raises(EngineError, match=r"step 3, member 1 \(seed 4\): .*out of bounds") as raised:
        train(batches=batches, engine=engine)
    assert "\n" not in str(raised.value) and raised.value.__cause__ is not None


def test_an_error_of_batches_names_its_arguments() -> None:
    def batches(step: int, seed: int) -> Any:
        return {}["x"] if (step, seed) == (3, 4) else vectors(step, seed)

    with pytest.raises(EngineError, match=r"batches\(3, 4\): KeyError: 'x'"):
        train(batches=batches)


class Frozen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.layer = nn.Linear(5, 5), nn.Linear(5, 3)
        self.first.requires_grad_(False)

    def forward(self, x: Tensor) -> Any:
        return self.layer(self.first(x).tanh())


def test_an_explanation_is_that_of_members_that_differ() -> None:
    known = Known(Frozen, cross_entropy, vectors)
    said = explain(known.build, known.loss, vectors(0, 0))
    assert said.engine == train(build=known.build).engine == "stack" and "differs between members" in said.reason
