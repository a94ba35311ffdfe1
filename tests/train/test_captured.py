"""Steps that are recorded and replayed, with a recorder that does on a processor what a CUDA graph does on a GPU: it keeps the operations
and their tensors, and a replay runs these operations again on these tensors, but none of the Python that called for them.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from stacks import fit_stack, sorting_stack
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from waiting import as_on_a_gpu

from rankfall.design import Component, Training
from rankfall.tasks._dataset import Split
from rankfall.train import philox, recipe
from rankfall.train.captured import SHAPES, Captured, Replay
from rankfall.train.data import Data
from rankfall.train.loop import TrainingHistory
from rankfall.train.members import DIVERGED, STOPPED, Members
from rankfall.train.objectives._base import Graded

SEEDS = [4, 9, 2]
TRAININGS = {name: Training(name, objective=Component(name)) for name in ("masked_tokens", "prefixes")}


class Recorder(TorchDispatchMode):
    """Keeps every operation with its arguments and results; all memory stays where it is."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[tuple[Any, Any, Any, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.operations.append((func, args, kwargs or {}, result))
        return result

    def replay(self) -> None:
        for func, args, kwargs, before in self.operations:
            result = func(*args, **kwargs)
            for old, new in zip(tree_leaves(before), tree_leaves(result)):
                if isinstance(old, torch.Tensor) and old.data_ptr() != new.data_ptr():
                    old.copy_(new)


def recorder(passes: Callable[[], Graded]) -> tuple[Graded, Replay]:
    recording = Recorder()
    with recording:
        graded = passes()

    def replay() -> None:
        with torch.no_grad():
            recording.replay()

    return graded, replay


def stack(
    targets: str = "classes", each: Sequence[dict[str, Any]] = (), **training: Any
) -> tuple[Members, Data, Training]:
    settings = {"epochs": 2, "lr": 1e-3, "dropout": 0.1, "batch": 8} | training
    return sorting_stack(SEEDS, each, targets, train=30, test=8, architecture={"depth": 1}, training=settings)


def trained(engine: Captured | None, **training: Any) -> tuple[Members, TrainingHistory]:
    members, data, chosen = stack(**training)
    members.engine = engine
    return members, fit_stack(members, data, chosen)[0]


@pytest.fixture(autouse=True)
def as_on_one(monkeypatch: pytest.MonkeyPatch) -> None:
    as_on_a_gpu(monkeypatch)
    monkeypatch.setattr(philox, "ROUNDS", 4)  # worse random numbers, in less time


@pytest.mark.parametrize(
    "training",
    [
        {"clip": 0.5, "weight_decay": 0.01, "schedule": {"name": "linear"}},
        {"each": [{}, {"lr": 1e30}, {"stop_loss": 100.0}]},  # one diverges, one stops after the first epoch
    ],
)
def test_replayed_training_is_the_same_bit_by_bit(training: dict[str, Any]) -> None:
    """Also the smaller batch at the end of an epoch, which has a recording of its own."""
    (plain, course), engine = trained(None, **training), Captured(record=recorder)
    (members, history) = trained(engine, **training)
    assert len(engine.recordings) == 2 and None not in engine.recordings.values() and engine.name == "captured"
    if "each" in training:
        assert plain.status.tolist() == [0, DIVERGED, STOPPED]
    assert torch.equal(members.weights, plain.weights) and torch.equal(members.status, plain.status)
    assert torch.equal(members.last_step, plain.last_step)
    for name, value in course.tensors.items():
        torch.testing.assert_close(history.tensors[name], value, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", ["masked_tokens", "prefixes"])
def test_what_an_objective_draws_is_drawn_anew_for_each_replay(name: str) -> None:
    """Other words are hidden at every step, and samples cut to other lengths."""

    def train(engine: Captured | None) -> tuple[Members, list[torch.Tensor]]:
        hidden = name == "masked_tokens"
        members, data, chosen = stack("hidden" if hidden else "classes")
        if hidden:
            words = {part: Split(split.inputs.clamp(1), split.inputs.clamp(1)) for part, split in data.splits.items()}
            data = replace(data, special=2, splits=words)
        members.engine = engine
        history, _ = fit_stack(members, data, chosen, recipe.objective(TRAININGS[name]))
        return members, [history.tensors["train.loss"], history.tensors["test.loss"]]

    engine = Captured(recipe.make_draw(TRAININGS[name]), recorder)
    (plain, expected), (members, actual) = train(None), train(engine)
    recorded = sum(recording is not None for recording in engine.recordings.values())
    assert recorded == min(len(engine.recordings), SHAPES) >= 2 and engine.name == "captured"
    assert torch.equal(members.weights, plain.weights)
    assert all(torch.equal(one, other) for one, other in zip(actual, expected))


def test_training_resumes_bit_by_bit_with_a_new_recording() -> None:
    whole, _ = trained(Captured(record=recorder))
    saved: dict[str, torch.Tensor] = {}
    for stop_at in (5, None):
        members, data, chosen = stack()
        members.engine = Captured(record=recorder)
        saved = fit_stack(members, data, chosen, stop_at=stop_at, saved=saved)[1]
    assert torch.equal(members.weights, whole.weights)


def test_masks_that_stand_still_are_noticed() -> None:
    """A recording that has the step of dropout as a number in it would drop the same values for ever."""

    def frozen(passes: Callable[[], Graded]) -> tuple[Graded, Replay]:
        graded, replay = recorder(passes)
        step = members.dropout.step.clone()  # type: ignore[union-attr, attr-defined]

        def replayed() -> None:
            members.dropout.step.copy_(step)  # type: ignore[union-attr, attr-defined]
            replay()

        return graded, replayed

    members, data, chosen = stack()
    engine = members.engine = Captured(record=frozen)
    with pytest.warns(UserWarning, match="a replay differs"):
        fit_stack(members, data, chosen)
    assert set(engine.recordings.values()) == {None} and engine.name == "plain"
    assert torch.equal(members.weights, trained(None)[0].weights)


def test_what_cannot_be_recorded_runs_as_it_would_without() -> None:
    def refused(passes: Callable[[], Graded]) -> tuple[Graded, Replay]:
        raise RuntimeError("operation not permitted when stream is capturing")

    with pytest.warns(UserWarning, match="not recorded.*not permitted"):
        members, _ = trained(Captured(record=refused))
    assert torch.equal(members.weights, trained(None)[0].weights)
