"""The ways of a GPU on a processor: an epoch is queued whole, and the program asks once between epochs who still runs. Steps are recorded
and replayed by a recorder that does what a CUDA graph does on a GPU: it keeps the operations and their tensors, and a replay runs these
operations again on these tensors, but none of the Python that called for them.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from helpers import needed
from stacks import fit_stack, sorting_stack
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from waiting import as_on_a_gpu, watched

from rankfall import components
from rankfall.design import Component, Training
from rankfall.tasks._dataset import Split
from rankfall.train import philox, recipe
from rankfall.train.captured import SHAPES, Captured, Replay
from rankfall.train.data import Data
from rankfall.train.loop import TrainingHistory
from rankfall.train.members import DIVERGED, STOPPED, Members
from rankfall.train.objectives._base import Graded
from rankfall.train.objectives.classes import classes
from rankfall.train.objectives.masked_tokens import corrupt, masked_tokens

SEEDS, SYMBOLS, SPECIAL, STEPS, EPOCHS = [4, 9, 2], 40, 3, 4, 2
CLIPPED = {"clip": 1.0, "weight_decay": 0.01, "stop_loss": 1e-9}
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


def stack(hidden: bool = False, each: Sequence[dict[str, Any]] = (), **training: Any) -> tuple[Members, Data, Training]:
    """Return members, their data and their training: two epochs of four steps, of which the last is smaller."""
    settings = {"epochs": EPOCHS, "lr": 1e-3, "dropout": 0.1, "batch": 8} | training
    sizes = {"symbols": SYMBOLS, "train": 30, "test": 8, "architecture": {"depth": 1}, "training": settings}
    members, data, chosen = sorting_stack(SEEDS, each, "hidden" if hidden else "classes", **sizes)
    data = replace(data, special=SPECIAL)
    if hidden:
        words = {name: part.inputs.clamp(SPECIAL - 1) for name, part in data.splits.items()}
        data = replace(data, splits={name: Split(inputs, inputs) for name, inputs in words.items()})
    return members, data, chosen


def trained(engine: Captured | None, **training: Any) -> tuple[Members, TrainingHistory]:
    members, data, chosen = stack(**training)
    members.engine = engine
    return members, fit_stack(members, data, chosen)[0]


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    as_on_a_gpu(monkeypatch)
    monkeypatch.setattr(philox, "ROUNDS", 4)  # worse random numbers, in less time


@pytest.mark.usefixtures("recorded")
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


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("name", ["masked_tokens", "prefixes"])
def test_what_an_objective_draws_is_drawn_anew_for_each_replay(name: str) -> None:
    """Other words are hidden at every step, and samples cut to other lengths."""

    def train(engine: Captured | None) -> tuple[Members, list[torch.Tensor]]:
        members, data, chosen = stack(name == "masked_tokens")
        members.engine = engine
        history, _ = fit_stack(members, data, chosen, recipe.objective(TRAININGS[name]))
        return members, [history.tensors["train.loss"], history.tensors["test.loss"]]

    engine = Captured(recipe.make_draw(TRAININGS[name]), recorder)
    (plain, expected), (members, actual) = train(None), train(engine)
    recorded = sum(recording is not None for recording in engine.recordings.values())
    assert recorded == min(len(engine.recordings), SHAPES) >= 2 and engine.name == "captured"
    assert torch.equal(members.weights, plain.weights)
    assert all(torch.equal(one, other) for one, other in zip(actual, expected))


@pytest.mark.usefixtures("recorded")
def test_training_resumes_bit_by_bit_with_a_new_recording() -> None:
    whole, _ = trained(Captured(record=recorder))
    saved: dict[str, torch.Tensor] = {}
    for stop_at in (5, None):
        members, data, chosen = stack()
        members.engine = Captured(record=recorder)
        saved = fit_stack(members, data, chosen, stop_at=stop_at, saved=saved)[1]
    assert torch.equal(members.weights, whole.weights)


@pytest.mark.usefixtures("recorded")
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


@pytest.mark.usefixtures("recorded")
def test_what_cannot_be_recorded_runs_as_it_would_without() -> None:
    def refused(passes: Callable[[], Graded]) -> tuple[Graded, Replay]:
        raise RuntimeError("operation not permitted when stream is capturing")

    with pytest.warns(UserWarning, match="not recorded.*not permitted"):
        members, _ = trained(Captured(record=refused))
    assert torch.equal(members.weights, trained(None)[0].weights)


@pytest.mark.parametrize(("hidden", "training"), [(False, CLIPPED), (False, {"optimizer": "adamw"}), (True, {})])
def test_an_epoch_waits_for_nothing(hidden: bool, training: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    as_on_a_gpu(monkeypatch)
    members, data, chosen = stack(hidden, **training)
    waits: list[int] = []
    with watched(lambda name: waits.append(members.step_count)):
        fit_stack(members, data, chosen, masked_tokens if hidden else classes)
    assert waits == [epoch * STEPS for epoch in range(EPOCHS)]


KINDS = ["normaliser", "position", "mask", "attention", "residual", "norm", "mlp", "sentinels", "embedding"]


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("kind", KINDS)
def test_no_component_waits_or_keeps_a_step_from_being_recorded(kind: str) -> None:
    (batch,) = stack()[1].epoch(SEEDS[:1], 0, 30, False)
    for name in components.names(kind):
        if name == components.AUTO:
            continue
        architecture = {"depth": 1, kind: name} | ({"position": "none"} if kind == "attention" else {})
        architecture |= needed(kind, name) | ({"norm": "none"} if kind == "residual" else {})
        if kind == "embedding" and components.describe(kind, name).facts["ACCEPTS"] == "vectors":  # type: ignore[union-attr]
            continue
        settings = {"architecture": architecture, "training": {"epochs": 1, "dropout": 0.1}}
        members, *_ = sorting_stack(SEEDS[:1], symbols=SYMBOLS, train=1, test=1, **settings)
        waits: list[str] = []
        with watched(waits.append, recorded=True):
            members.step(classes, batch)
        assert (name, waits) == (name, [])


def test_a_gpu_hides_the_words_that_a_processor_hides(monkeypatch: pytest.MonkeyPatch) -> None:
    _, data, _ = stack(True)
    batches = [*data.epoch(SEEDS, 1, 8, True), *data.evaluation_batches("test", SEEDS)]
    numpys = [corrupt(batch, 0.4, 0.5, 0.3) for batch in batches]
    as_on_a_gpu(monkeypatch)
    for batch, expected in zip(batches, numpys):
        assert all(map(torch.equal, corrupt(batch, 0.4, 0.5, 0.3), expected))


@pytest.mark.parametrize("hidden", [False, True])
def test_training_by_the_ways_of_a_gpu_is_the_same_bit_by_bit(hidden: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With masks, words and orders that are made the way of a GPU, on the same processor."""
    objective = masked_tokens if hidden else classes
    plain, data, chosen = stack(hidden)
    fit_stack(plain, data, chosen, objective)
    as_on_a_gpu(monkeypatch)
    other, data, chosen = stack(hidden)
    history, _ = fit_stack(other, data, chosen, objective)
    assert torch.equal(plain.weights, other.weights)
    assert history.tensors["test.loss"][:, -1].isfinite().all()
