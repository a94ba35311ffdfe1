"""Processor time of a training step, for all trained architectures of a setting in one job.

Wall-clock time depends on what else the machine does. Therefore a step is timed by the processor time of its thread, PyTorch may use one
thread only, and the architectures of a setting take turns. In each round, every architecture is built anew, takes warm-up steps, and
then the steps that are timed. A slow machine thus slows all architectures alike, and an unfavourable memory layout affects one reading
of several. Gradients are computed by autograd for one network at a time, the only engine that supports every architecture.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from socket import gethostname
from typing import Any

import torch

from rankfall import components
from rankfall.annotations import DataFrame
from rankfall.design import Architecture, Component, Training, names, parts
from rankfall.errors import describe_error
from rankfall.measure.context import Context
from rankfall.nets.network import Shape
from rankfall.report.part_numbers import complete_options, is_missing
from rankfall.report.ranking import write_seeds
from rankfall.report.settings import number_variants
from rankfall.tasks._dataset import draw
from rankfall.train import recipe
from rankfall.train.data import Data

NEEDS = "tables"
TABLES = ["cells"]
LIMITS = {"rounds": (6, None)}
SETTLING = 1  # warm-up steps
ABOUT = ("key", "task", "architecture", "training", "depth", "seed")


def cost(context: Context, *, rounds: int = 9, steps: int = 2) -> list[dict[str, Any]]:
    """Time a training step of every trained architecture.

    `rounds`: readings per architecture; `steps`: timed steps per reading, which is their mean.
    """
    cells = context.table("cells")
    if cells is None or not len(cells):
        return []
    cells = number_variants(cells)
    cells = cells[cells.trained & (cells.status == "done")]
    settings = {setting.key.iloc[0]: setting for _, setting in cells.groupby("setting")}
    # A setting is timed again if one of its networks or the machine is another.
    items = [[gethostname(), setting[list(ABOUT)].astype(str).to_numpy().tolist()] for setting in settings.values()]
    with one_thread():
        return context.rows(
            items, lambda item: time_setting(settings[item[1][0][0]], rounds, steps), made_of=lambda item: ()
        )


def time_setting(setting: DataFrame, rounds: int, steps: int) -> list[dict[str, Any]]:
    """Return the rows of the cells of a setting, which share the readings of their architecture."""
    rows = []
    designs = [part.sort_values("seed") for _, part in setting.groupby("design")]
    readings, failed = time_in_turn([part.iloc[0] for part in designs], rounds, steps)
    for part, milliseconds, why in zip(designs, readings, failed):
        timing = {
            "cost_ms": statistics.median(milliseconds) if milliseconds else None,
            "readings": write_seeds(dict(enumerate(milliseconds))) if milliseconds else None,
            "cost_ms_reason": why,
        }
        rows += [{name: cell[name] for name in ABOUT} | timing for _, cell in part.iterrows()]
    return rows


def time_in_turn(cells: list[Any], rounds: int, steps: int) -> tuple[list[list[float]], list[str]]:
    """Return the readings of each cell's architecture, in ms per step, and the reason if there are none.

    All cells have the same setting.
    """
    task = components.bound("task", component("task", cells[0].task_component))
    facts = components.facts_of("task", cells[0].task_component.partition("(")[0])
    dataset = draw(task, int(cells[0].seed))
    shape = Shape(facts["INPUTS"], facts["TARGETS"], dataset.length, dataset.size_in, dataset.size_out)
    readings: list[list[float]] = [[] for _ in cells]
    failed = ["" for _ in cells]
    for _ in range(rounds):
        for index, cell in enumerate(cells):
            if failed[index]:
                continue
            try:
                readings[index].append(1000 * time_steps(cell, shape, dataset, steps))
            except (RuntimeError, ValueError, TypeError) as error:  # raised by a user's component
                failed[index], readings[index] = f"its step failed: {describe_error(error)}", []
    return readings, failed


def time_steps(cell: Any, shape: Shape, dataset: Any, steps: int) -> float:
    """Return the processor time of one step, in seconds: the mean over `steps` steps of a newly built network on one batch, by autograd."""
    architecture, training, seed = design(Architecture, cell), design(Training, cell), int(cell.seed)
    device = torch.device("cpu")
    members = recipe.initial(architecture, shape, [seed], [training], device)
    objective = recipe.objective(training)
    data = Data.from_datasets([dataset], getattr(torch, training.dtype), device)
    members.begin_epoch(0, training.epochs)
    batch = next(data.epoch([seed], 0, training.batch, training.shuffle))

    def step() -> object:
        with recipe.products(training, device):
            return members.plain_step(objective, batch)

    for _ in range(SETTLING):
        step()
    return time_calls(step, steps)


def design(kind: type, cell: Mapping[str, Any]) -> Any:
    """Return the architecture or training in a row of the table of cells."""
    kinds: Mapping[str, str] = parts(kind)
    values: dict[str, Any] = {}
    for name in names(kind):
        value = cell[name]
        if is_missing(value):
            values[name] = None
        elif name in kinds:
            values[name] = component(kinds[name], value)
        else:
            values[name] = value.item() if hasattr(value, "item") else value
    label = cell["architecture" if kind is Architecture else "training"]
    return kind(name=label, **values)


def component(kind: str, text: str) -> Component:
    """Return the component that a table writes as `scaled(scale=0.1)`."""
    return Component(*complete_options(kind, text))


def time_calls(work: Callable[[], object], calls: int) -> float:
    """Return the mean processor time of one call in this thread, in seconds."""
    began = time.thread_time()
    for _ in range(calls):
        work()
    return (time.thread_time() - began) / calls


@contextmanager
def one_thread() -> Iterator[None]:
    """Restrict PyTorch to one thread, the one that is timed."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
