"""Products in fewer bits: how far a gradient is off, and that nothing else changes."""

from typing import Any

import torch
from stacks import CPU, fit_stack, sorting_stack

from rankfall.design import Training
from rankfall.train import recipe
from rankfall.train.data import Data
from rankfall.train.device import matrix_products
from rankfall.train.members import Members
from rankfall.train.objectives.classes import classes

SEEDS = [4, 9]


def stack(**training: Any) -> tuple[Members, Data, Training]:
    settings = {"epochs": 2, "lr": 1e-3, "dropout": 0.1, "batch": 8} | training
    return sorting_stack(SEEDS, train=32, test=8, training=settings)


def gradient(precision: str) -> torch.Tensor:
    members, data, _ = stack()
    (batch,) = data.epoch(SEEDS, 0, 32, False)
    with matrix_products(precision, CPU):
        members.differentiate(classes(members.module, batch).loss)
    return members.grads.clone()


def test_bfloat16_is_off_by_its_rounding() -> None:
    """2^-9 at most in each factor; not by nothing, for then it would not be bfloat16."""
    full, rounded = gradient("full"), gradient("bf16")
    off = (rounded - full).norm(dim=1) / full.norm(dim=1)
    assert rounded.dtype == torch.float32
    assert ((off > 1e-4) & (off < 2e-2)).all()


def test_every_step_casts_the_weights_that_it_has() -> None:
    """Training within one context and within one a step is the same: no cast of earlier weights is kept."""
    together, data, training = stack(precision="bf16")
    with recipe.products(training, CPU):
        fit_stack(together, data, training)
    apart, data, training = stack(precision="bf16")
    for epoch in range(2):
        apart.begin_epoch(epoch, 2)
        for batch in data.epoch(SEEDS, epoch, 8, True):
            with recipe.products(training, CPU):
                apart.step(classes, batch)
    assert torch.equal(together.weights, apart.weights)
    plain, data, training = stack()
    fit_stack(plain, data, training)
    assert not torch.equal(together.weights, plain.weights)
