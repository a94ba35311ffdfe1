"""The networks that are measured: those that the default run trains, and the sorting network at other sizes."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from rankfall import components
from rankfall.design import Training
from rankfall.run.config.types import read
from rankfall.run.jobs.cells import shape_of, stack_data
from rankfall.run.plan import make_plan
from rankfall.run.plan.cell import Cell
from rankfall.run.plan.engines import MACHINE
from rankfall.tasks._dataset import draw
from rankfall.train import recipe
from rankfall.train.members import Members
from rankfall.train.objectives._base import Samples

ROOT = Path(__file__).parents[1]
PUBLISHED = "workflow/presets/paper.yaml"
Name = (
    str | tuple[tuple[str, int], ...]
)  # of a network of the default or the published run, or sizes of the sorting network
HEADLINES = {  # the shapes that have a clean module
    "sorting": "sorting SAN+skip converged 6",
    "hull": "convex_hull SAN+skip hull 6",
    "mlm": "masked_text MLM-softmax masked 1",
}


def default() -> dict[str, Cell]:
    return trained_by("config.yaml")


@cache
def trained_by(config: str) -> dict[str, Cell]:
    """One cell for each network that a run trains, by task, architecture, training and depth."""
    raw = read(ROOT / config)
    plan = make_plan(raw | {"compute": raw.get("compute", {}) | {"engine": "auto"}})
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
        "compute": {"engine": "auto"},
    }
    return next(iter(make_plan(raw).cells))


def cell_of(name: Name) -> Cell:
    if not isinstance(name, str):
        return sorting(name)
    return default()[name] if name in default() else trained_by(PUBLISHED)[name]


def trained(cell: Cell, dropout: float | None) -> Training:
    return cell.training if dropout is None else replace(cell.training, dropout=dropout)


def stack(
    name: Name, members: int, dropout: float | None = None, machine: bool = False
) -> tuple[Members, Samples, Any]:
    """Members of a network in training, a batch for them, and the objective; dropout as the run has it, if not given."""
    cell, cpu = cell_of(name), torch.device("cpu")
    training = trained(cell, dropout)
    dataset = draw(components.bound("task", cell.task.task), cell.data_seed)
    seeds = list(range(members))
    shape = shape_of(cell, dataset)
    made = recipe.initial(cell.architecture, shape, seeds, [training] * members, cpu)
    if machine:
        from rankfall.train.machine.engine import Machined  # needs numba, which not everybody has

        made.engine = Machined(made, cell.architecture, shape, training)
    data = stack_data([cell], [dataset] * members, cpu)
    batch = next(iter(data.epoch(seeds, 0, training.batch, training.shuffle)))
    return made, batch, recipe.objective(training)


def engines(name: Name) -> list[str]:
    """Those that serve a network."""
    return ["plain", *([MACHINE] if cell_of(name).engine == MACHINE and find_spec("numba") else [])]


def plain_step(name: Name, members: int, dropout: float | None = None) -> Callable[[], object]:
    made, batch, objective = stack(name, members, dropout)
    return lambda: made.step(objective, batch)


def machine_step(name: Name, members: int, dropout: float | None = None) -> Callable[[], object]:
    made, batch, objective = stack(name, members, dropout, machine=True)
    return lambda: made.step(objective, batch)
