"""On a GPU no step of training waits for the device: an epoch is queued whole, and the program asks once between epochs who still runs."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from helpers import cells, needed
from waiting import as_on_a_gpu, watched

from rankfall import components
from rankfall.nets.network import Shape
from rankfall.random_streams import stream
from rankfall.tasks._dataset import Split
from rankfall.tasks.sorting import sorting
from rankfall.train import philox, recipe
from rankfall.train.data import Data
from rankfall.train.loop import fit
from rankfall.train.members import Members
from rankfall.train.objectives.classes import classes
from rankfall.train.objectives.masked_tokens import corrupt, masked_tokens

CPU = torch.device("cpu")
SEEDS, LENGTH, SYMBOLS, SPECIAL = [4, 9, 2], 5, 40, 3
STEPS, EPOCHS = 4, 2
CLIPPED = {"clip": 1.0, "weight_decay": 0.01, "stop_loss": 1e-9}


def stack(hidden: bool, **training: Any) -> tuple[Members, Data, Any]:
    """Members, their data and their course; four steps an epoch, of which the last is smaller."""
    (cell,) = cells(
        architecture={"depth": 1}, training={"epochs": EPOCHS, "lr": 1e-3, "dropout": 0.1, "batch": 8, **training}
    )
    shape = Shape("tokens", "hidden" if hidden else "classes", LENGTH, SYMBOLS, SYMBOLS)
    members = recipe.initial(cell.architecture, shape, SEEDS, [cell.training] * 3, CPU)
    datasets = [sorting(stream(s, "data"), train=30, test=8, length=LENGTH, symbols=SYMBOLS) for s in SEEDS]
    data = replace(Data.from_datasets(datasets, torch.float32, CPU), special=SPECIAL)
    if hidden:
        words = {name: part.inputs.clamp(SPECIAL - 1) for name, part in data.splits.items()}
        data = replace(data, splits={name: Split(inputs, inputs) for name, inputs in words.items()})
    return members, data, recipe.course(cell.training)


def heard_in(made: tuple[Members, Data, Any], objective: Any) -> list[tuple[str, int]]:
    """(operation, step) of each time that the program would wait."""
    members, data, course = made
    found: list[tuple[str, int]] = []
    with watched(lambda name: found.append((name, members.step_count))):
        fit(members, data, objective, course)
    return found


@pytest.mark.parametrize(("hidden", "training"), [(False, CLIPPED), (False, {"optimizer": "adamw"}), (True, {})])
def test_an_epoch_waits_for_nothing(hidden: bool, training: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    as_on_a_gpu(monkeypatch)
    found = heard_in(stack(hidden, **training), masked_tokens if hidden else classes)
    assert [step for _, step in found] == [epoch * STEPS for epoch in range(EPOCHS)]


KINDS = ["normaliser", "position", "mask", "attention", "residual", "norm", "mlp", "sentinels", "embedding"]


@pytest.mark.parametrize("kind", KINDS)
def test_no_component_waits_or_keeps_a_step_from_being_recorded(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    as_on_a_gpu(monkeypatch)
    monkeypatch.setattr(philox, "ROUNDS", 4)  # worse random numbers, in less time
    (batch,) = stack(False)[1].epoch(SEEDS, 0, 30, False)
    for name in components.names(kind):
        if name == components.AUTO:
            continue
        architecture = {"depth": 1, kind: name} | ({"position": "none"} if kind == "attention" else {})
        architecture |= needed(kind, name) | ({"norm": "none"} if kind == "residual" else {})
        if kind == "embedding" and components.describe(kind, name).facts["ACCEPTS"] == "vectors":  # type: ignore[union-attr]
            continue
        (cell,) = cells(architecture=architecture, training={"epochs": 1, "dropout": 0.1})
        shape = Shape("tokens", "classes", LENGTH, SYMBOLS, SYMBOLS)
        members = recipe.initial(cell.architecture, shape, SEEDS, [cell.training] * 3, CPU)
        found: list[str] = []
        with watched(found.append, recorded=True):
            members.step(classes, batch)
        assert (name, found) == (name, [])


def test_a_gpu_hides_the_words_that_a_processor_hides(monkeypatch: pytest.MonkeyPatch) -> None:
    _, data, _ = stack(True)
    batches = [*data.epoch(SEEDS, 1, 8, True), *data.evaluation_batches("test", SEEDS)]
    numpys = [corrupt(batch, 0.4, 0.5, 0.3) for batch in batches]
    as_on_a_gpu(monkeypatch)
    for batch, expected in zip(batches, numpys):
        assert all(torch.equal(one, other) for one, other in zip(corrupt(batch, 0.4, 0.5, 0.3), expected))


@pytest.mark.parametrize("hidden", [False, True])
def test_training_is_the_same_bit_by_bit(hidden: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With masks, words and orders that are made the way of a GPU, on the same processor."""
    objective = masked_tokens if hidden else classes
    plain = stack(hidden)
    fit(*plain[:2], objective, plain[2])
    as_on_a_gpu(monkeypatch)
    other = stack(hidden)
    history = fit(*other[:2], objective, other[2])
    assert torch.equal(plain[0].weights, other[0].weights)
    assert history.tensors["test.loss"][:, -1].isfinite().all()
