"""The networks that are measured: those that the default run trains, and the sorting network at other sizes."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from rankfall import components
from rankfall.jobs.cells import shape_of, stacked
from rankfall.plan import make_plan
from rankfall.plan.cell import Cell
from rankfall.tasks._dataset import draw
from rankfall.train import recipe
from rankfall.train.members import Members
from rankfall.train.objectives._base import Samples

ROOT = Path(__file__).parents[1]
Name = str | tuple[tuple[str, int], ...]  # of a network of the default run, or sizes of the sorting network
HEADLINES = {  # the shapes that have a clean module
    "sorting": "sorting SAN+skip converged 6",
    "hull": "convex_hull SAN+skip hull 6",
    "mlm": "masked_text MLM-softmax masked 1",
}


@cache
def default() -> dict[str, Cell]:
    """One cell for each network that the default run trains, by task, architecture, training and depth."""
    plan = make_plan(ROOT / "config.yaml")
    found: dict[str, Cell] = {}
    for cell in plan.cells:
        if cell.training.epochs:
            label = f"{cell.task.name} {cell.architecture.name} {cell.training.name} {cell.architecture.depth}"
            found.setdefault(label, cell)
    return found


@cache
def sorting(sizes: tuple[tuple[str, int], ...]) -> Cell:
    """The sorting network with other sizes; `length` is the task's."""
    given = dict(sizes)
    raw: dict[str, Any] = {
        "tasks": {"sorting": {"length": given.pop("length", 8), "train": 60, "test": 10}},
        "architectures": {"SAN+skip": {"residual": "add", "mlp": "none"} | given},
        "trainings": {"bench": {"lr": 1e-3, "epochs": 1, "batch": 30, "dropout": 0.1}},
        "grid": [{"task": "sorting", "architecture": "SAN+skip", "training": "bench", "seed": 0}],
    }
    return next(iter(make_plan(raw).cells))


def cell_of(name: Name) -> Cell:
    return default()[name] if isinstance(name, str) else sorting(name)


def stack(name: Name, members: int, dropout: float | None = None) -> tuple[Members, Samples, Any]:
    """Members of a network in training, a batch for them, and the objective; dropout as the run has it, if not given."""
    cell, cpu = cell_of(name), torch.device("cpu")
    training = cell.training if dropout is None else replace(cell.training, dropout=dropout)
    dataset = draw(components.bound("task", cell.task.task), cell.data_seed)
    seeds = list(range(members))
    made = recipe.initial(cell.architecture, shape_of(cell, dataset), seeds, [training] * members, cpu)
    data = stacked([cell], [dataset] * members, cpu)
    batch = next(iter(data.epoch(seeds, 0, training.batch, training.shuffle)))
    return made, batch, recipe.objective(training)


def served(name: Name) -> bool:
    """Whether the plan gives this network to the fused engine."""
    return getattr(cell_of(name), "engine", "plain") == "fused"


def plain_step(name: Name, members: int, dropout: float | None = None) -> Callable[[], object]:
    made, batch, objective = stack(name, members, dropout)
    return lambda: made.step(objective, batch)


def fused_step(name: Name, members: int, dropout: float | None = None) -> Callable[[], object]:
    from rankfall.jobs import training

    made, batch, objective = stack(name, members, dropout)
    made.engine = training.engine_of(cell_of(name), made)  # type: ignore
    return lambda: made.step(objective, batch)
