"""On a GPU no step of training waits for the device: an epoch is queued whole, and the program asks once between epochs who still runs."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from helpers import needed
from stacks import fit_stack, sorting_stack
from waiting import as_on_a_gpu, watched

from rankfall import components
from rankfall.design import Training
from rankfall.tasks._dataset import Split
from rankfall.train import philox
from rankfall.train.data import Data
from rankfall.train.members import Members
from rankfall.train.objectives.classes import classes
from rankfall.train.objectives.masked_tokens import corrupt, masked_tokens

SEEDS, SYMBOLS, SPECIAL = [4, 9, 2], 40, 3
STEPS, EPOCHS = 4, 2
CLIPPED = {"clip": 1.0, "weight_decay": 0.01, "stop_loss": 1e-9}


def stack(hidden: bool, **training: Any) -> tuple[Members, Data, Training]:
    """Return members, their data and their training: two epochs of four steps, of which the last is smaller."""
    settings = {"epochs": EPOCHS, "lr": 1e-3, "dropout": 0.1, "batch": 8} | training
    sizes = {"symbols": SYMBOLS, "train": 30, "test": 8, "architecture": {"depth": 1}, "training": settings}
    members, data, chosen = sorting_stack(SEEDS, (), "hidden" if hidden else "classes", **sizes)
    data = replace(data, special=SPECIAL)
    if hidden:
        words = {name: part.inputs.clamp(SPECIAL - 1) for name, part in data.splits.items()}
        data = replace(data, splits={name: Split(inputs, inputs) for name, inputs in words.items()})
    return members, data, chosen


@pytest.mark.parametrize(("hidden", "training"), [(False, CLIPPED), (False, {"optimizer": "adamw"}), (True, {})])
def test_an_epoch_waits_for_nothing(hidden: bool, training: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    as_on_a_gpu(monkeypatch)
    members, data, chosen = stack(hidden, **training)
    waits: list[int] = []
    with watched(lambda name: waits.append(members.step_count)):
        fit_stack(members, data, chosen, masked_tokens if hidden else classes)
    assert waits == [epoch * STEPS for epoch in range(EPOCHS)]


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
        settings = {"architecture": architecture, "training": {"epochs": 1, "dropout": 0.1}}
        members, *_ = sorting_stack(SEEDS, symbols=SYMBOLS, train=1, test=1, **settings)
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
        assert all(torch.equal(one, other) for one, other in zip(corrupt(batch, 0.4, 0.5, 0.3), expected))


@pytest.mark.parametrize("hidden", [False, True])
def test_training_is_the_same_bit_by_bit(hidden: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With masks, words and orders that are made the way of a GPU, on the same processor."""
    objective = masked_tokens if hidden else classes
    plain, data, chosen = stack(hidden)
    fit_stack(plain, data, chosen, objective)
    as_on_a_gpu(monkeypatch)
    other, data, chosen = stack(hidden)
    history, _ = fit_stack(other, data, chosen, objective)
    assert torch.equal(plain.weights, other.weights)
    assert history.tensors["test.loss"][:, -1].isfinite().all()
