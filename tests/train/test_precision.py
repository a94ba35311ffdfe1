"""Products in fewer bits: how far a gradient is off, that nothing else changes, and who is refused."""

from typing import Any

import torch
from helpers import cells

from rankfall.nets.network import Shape
from rankfall.random_streams import stream
from rankfall.tasks.sorting import sorting
from rankfall.train import recipe
from rankfall.train.data import Data
from rankfall.train.device import matrix_products
from rankfall.train.loop import fit
from rankfall.train.members import Members
from rankfall.train.objectives.classes import classes

CPU = torch.device("cpu")
SEEDS = [4, 9]


def stack(**training: Any) -> tuple[Members, Data, Any]:
    (cell,) = cells(training={"epochs": 2, "lr": 1e-3, "dropout": 0.1, "batch": 8, **training})
    shape = Shape("tokens", "classes", 5, 6, 6)
    members = recipe.initial(cell.architecture, shape, SEEDS, [cell.training] * 2, CPU)
    data = Data.from_datasets(
        [sorting(stream(s, "data"), train=32, test=8, length=5, symbols=6) for s in SEEDS], torch.float32, CPU
    )
    return members, data, cell.training


def gradient(precision: str) -> torch.Tensor:
    members, data, _ = stack()
    (batch,) = data.epoch(SEEDS, 0, 32, False)
    with matrix_products(precision, CPU):
        members.differentiate(classes(members.module, batch).loss)
    return members.grads.clone()


def test_bfloat16_is_off_by_its_rounding() -> None:
    """2^-9 at most in each factor; not by nothing, for then it would not be bfloat16."""
    full, found = gradient("full"), gradient("bf16")
    off = (found - full).norm(dim=1) / full.norm(dim=1)
    assert found.dtype == torch.float32
    assert ((off > 1e-4) & (off < 2e-2)).all()


def test_every_step_casts_the_weights_that_it_has() -> None:
    """Training within one context and within one a step is the same: no cast of earlier weights is kept."""
    together, data, training = stack(precision="bf16")
    with recipe.products(training, CPU):
        fit(together, data, classes, recipe.course(training))
    apart, data, training = stack(precision="bf16")
    for epoch in range(2):
        apart.begin_epoch(epoch, 2)
        for batch in data.epoch(SEEDS, epoch, 8, True):
            with recipe.products(training, CPU):
                apart.step(classes, batch)
    assert torch.equal(together.weights, apart.weights)
    plain, data, training = stack()
    fit(plain, data, classes, recipe.course(training))
    assert not torch.equal(together.weights, plain.weights)
