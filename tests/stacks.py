"""Make small stacks of networks that learn to sort, and train them, also with an interruption."""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from helpers import cells
from torch import Tensor

from rankfall.design import Training
from rankfall.nets.network import Shape
from rankfall.random_streams import stream
from rankfall.tasks.sorting import sorting
from rankfall.train import recipe
from rankfall.train.data import Data
from rankfall.train.loop import Course, TrainingHistory, fit, restore, state_of
from rankfall.train.members import Members
from rankfall.train.objectives._base import Objective

CPU, LENGTH = torch.device("cpu"), 5


def sorting_stack(
    seeds: Sequence[int],
    each: Sequence[dict[str, Any]] = (),
    targets: str = "classes",
    symbols: int = 6,
    train: int = 64,
    test: int = 32,
    **changes: Any,
) -> tuple[Members, Data, Training]:
    """Return members, their data and their training. `changes` are those of `helpers.config`; `each` changes a member's training."""
    (cell,) = cells(**changes)
    trainings = [replace(cell.training, **more) for more in each or [{}] * len(seeds)]
    members = recipe.initial(
        cell.architecture, Shape("tokens", targets, LENGTH, symbols, symbols), seeds, trainings, CPU
    )
    datasets = [sorting(stream(s, "data"), train=train, test=test, length=LENGTH, symbols=symbols) for s in seeds]
    return members, Data.from_datasets(datasets, getattr(torch, cell.training.dtype), CPU), cell.training


def fit_stack(
    members: Members,
    data: Data,
    training: Training | Course,
    objective: Objective | None = None,
    stop_at: int | None = None,
    saved: dict[str, Tensor] | None = None,
) -> tuple[TrainingHistory, dict[str, Tensor]]:
    """Train from the beginning or from a saved state, to the end or to a step, and return the history and the state at that step."""
    history, state = TrainingHistory(len(members), training.epochs, CPU), {}
    if saved:
        restore(members, history, saved)

    def after_step() -> None:
        if members.step_count == stop_at:
            state.update({name: value.clone() for name, value in state_of(members, history).items()})
            raise InterruptedError

    with contextlib.suppress(InterruptedError):
        fit(members, data, objective or recipe.objective(training), recipe.course(training), history, after_step)
    return history, state
