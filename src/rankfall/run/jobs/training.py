"""A training job: find the stored cells, train the missing ones in stacks, and store every finished stack at once."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rankfall.design import Training
from rankfall.nets.network import Shape
from rankfall.run.guards.reads import Code
from rankfall.run.guards.unchanged import numerics
from rankfall.run.jobs.before import check_cells, machine_of, prepare_engines
from rankfall.run.jobs.cells import datasets_of, shape_of, stack_data
from rankfall.run.jobs.engine import (
    Settings,
    StackCheckpoint,
    Work,
    machine,
    members_at_once,
    on_cpu,
    peak_megabytes,
    stacks,
    stop_signals,
)
from rankfall.run.plan.engines import MACHINES, PLAIN
from rankfall.tasks._dataset import TEST, TRAIN
from rankfall.train import recipe
from rankfall.train.clock import StepClock
from rankfall.train.data import Data, steps_per_epoch
from rankfall.train.device import separate_large_blocks
from rankfall.train.fit import evaluate, fit
from rankfall.train.history import TrainingHistory, count_of, is_count
from rankfall.train.members import DIVERGED, RUNNING, STOPPED, Members, StepEngine
from rankfall.train.objectives._base import Objective
from rankfall.train.resume import add_prefix, restore, state_of

if TYPE_CHECKING:
    from rankfall.run.plan.cell import Cell
    from rankfall.run.store import Store
    from rankfall.train.progress import Progress

TRAINING = "training"  # the only part of a stack's checkpoint


def train_cells(
    cells: "Sequence[Cell]",
    store: "Store",
    settings: Settings,
    progress: "Progress",
    code: "Callable[[Cell], dict[str, Any]]",
) -> None:
    """Train the missing cells, so that the store has every cell as done, diverged or failed. `code` returns what to record about a cell's
    origin."""
    missing = find_missing(cells, store)
    prepare_engines(cells, missing)
    progress.begin(total=len(cells), in_store=len(cells) - len(missing))
    with stop_signals() as stopped:
        checked = check_cells(missing, store, settings.device, progress.note)
        job = TrainingWork(store, settings, progress, code, stopped, checked.untraced)
        keep_refused(checked.refused, missing, job)
        for _ in job.run(checked.passed):
            pass
    progress.end()


def find_missing(cells: "Sequence[Cell]", store: "Store") -> "list[Cell]":
    """Return the cells that the store does not have, or has as failed."""
    found = store.find_cells([cell.key for cell in cells], {cell.group for cell in cells})
    return [cell for cell in cells if cell.key not in found or found[cell.key].status == "failed"]


@dataclass(frozen=True)
class TrainingWork(Work[None]):
    """The work of a training job: one stack at a time, resumed from its checkpoint."""

    store: "Store"
    settings: Settings
    progress: "Progress"
    code: "Callable[[Cell], dict[str, Any]]"
    stopped: Callable[[], str | None]
    untraced: Collection[str] = ()  # groups that the machine was to train and cannot trace

    def compute(self, cells: "list[Cell]") -> None:
        with numerics(*self.codes(cells)):
            train_stack(cells, self)

    def most(self, cell: "Cell") -> int:
        return members_at_once(cell, self.settings)

    def handle_failure(self, cell: "Cell", reason: str, error: Exception, seconds: float) -> None:
        self.progress.note(f"failed: {cell.key}: {reason}")
        save_failed([cell], [reason], seconds, self)

    def keys(self, cells: "Sequence[Cell]") -> list[str]:
        return [cell.key for cell in cells]

    def codes(self, cells: "Sequence[Cell]") -> list[Code]:
        return [cell.code for cell in cells]

    def note(self, text: str) -> None:
        self.progress.note(text)


def keep_refused(refused: Mapping[str, str], cells: "Sequence[Cell]", job: TrainingWork) -> None:
    """Store the reasons for cells that are not trained."""
    for stack in stacks([cell for cell in cells if cell.key in refused], job.settings.stack):
        save_failed(stack, [refused[cell.key] for cell in stack], 0.0, job)


def save_failed(cells: "list[Cell]", reasons: list[str], seconds: float, job: TrainingWork) -> None:
    """Store cells of one group as failed, with the reasons."""
    records = [
        {**job.code(cell), **machine(), "status": "failed", "reason": reason, "seconds": seconds}
        for cell, reason in zip(cells, reasons)
    ]
    job.store.save_stack(cells[0].group, job.keys(cells), {"none": torch.zeros(len(cells))}, records, {})
    job.progress.cells_done(len(cells))


@dataclass(frozen=True)
class Stack:
    """The networks of one group with their data, objective, history and clock."""

    cells: "list[Cell]"
    members: Members
    data: Data
    objective: Objective
    history: TrainingHistory
    clock: StepClock

    @property
    def training(self) -> Training:
        return self.cells[0].training


def train_stack(cells: "list[Cell]", job: TrainingWork) -> None:
    """Train cells of one group from the beginning or from their checkpoint, and store them."""
    stack = build_stack(cells, job)
    checkpoint = job.checkpoint(job.keys(cells), cells)
    resume(stack, checkpoint, job.progress)
    fit_stack(stack, checkpoint, job.progress)
    keep_stack(stack, evaluate_stack(stack), checkpoint, job)


def build_stack(cells: "list[Cell]", job: TrainingWork) -> Stack:
    """Return data and networks as they are before the first step."""
    datasets, device = datasets_of(cells, job.store), job.settings.device
    shape, trainings = shape_of(cells[0], datasets[0]), [cell.training for cell in cells]
    members = recipe.initial(cells[0].architecture, shape, [cell.seed for cell in cells], trainings, device)
    engine = PLAIN if cells[0].group in job.untraced else cells[0].engine
    members.engine = engine_of(engine, cells[0], members, shape)
    history = TrainingHistory(len(cells), trainings[0].epochs, device)
    data, objective = stack_data(cells, datasets, device), recipe.objective(trainings[0])
    return Stack(cells, members, data, objective, history, StepClock(device))


def evaluate_stack(stack: Stack) -> dict[str, dict[str, Tensor]]:
    """Return every metric (K,) on each split at the end of training."""
    splits = select_splits(stack.data.splits, stack.training.epochs)
    with separate_large_blocks(), recipe.products(stack.training, stack.members.device):
        sums = {split: evaluate(stack.members, stack.data, stack.objective, split) for split in splits}
    return {split: compute_means(of) for split, of in sums.items()}


def keep_stack(
    stack: Stack, final: Mapping[str, Mapping[str, Tensor]], checkpoint: StackCheckpoint, job: TrainingWork
) -> None:
    """Store the weights, the history, and how each network ended."""
    cells, members, step = stack.cells, stack.members, stack.clock.step_seconds
    shared = {
        "seconds": checkpoint.seconds / len(cells),
        "megabytes": peak_megabytes(),
        "device": str(job.settings.device),
        "engine": members.engine.name if members.engine else "plain",
        "dtype": stack.training.dtype,
        "threads": torch.get_num_threads(),
        "stack": checkpoint.identity,
        "together": len(cells),
        "step_ms": None if step is None else 1000 * step / len(cells),
    }
    records = []
    for k, cell in enumerate(cells):
        metrics = {split: {name: float(value[k]) for name, value in of.items()} for split, of in final.items()}
        about = {**job.code(cell), **machine(), **shared, **describe_ending(members, k, metrics)}
        records.append(about | {"chance": float(stack.data.chance[k]), "final": metrics})
    tensors = members.tensors() | add_prefix("history", stack.history.tensors)
    job.check(cells)
    job.store.save_stack(cells[0].group, job.keys(cells), on_cpu(tensors), records, {"members": checkpoint.identity})
    checkpoint.drop()
    job.progress.cells_done(len(cells))


def engine_of(engine: str, cell: "Cell", members: Members, shape: Shape) -> StepEngine | None:
    """Return the engine of a group's steps, or None for autograd. The machine requires numba, an optional dependency."""
    if engine in MACHINES:
        return machine_of(engine)(members, cell.architecture, shape, cell.training, cell.code)
    return members.engine


def resume(stack: Stack, checkpoint: StackCheckpoint, progress: "Progress") -> None:
    """Restore members and history from the last checkpoint, if it exists."""
    found = checkpoint.load(TRAINING)
    if found is not None:
        restore(stack.members, stack.history, found)
        progress.note(f"resuming a stack of {len(stack.members)} at step {stack.members.step_count}")


def fit_stack(stack: Stack, checkpoint: StackCheckpoint, progress: "Progress") -> None:
    """Call `fit` with a checkpoint and a progress display."""
    course, members, history = recipe.course(stack.training), stack.members, stack.history

    def after_step() -> None:
        progress.step(members, history)
        checkpoint.after_step(TRAINING, members.step_count, lambda: state_of(members, history))

    progress.begin_stack(members, steps_per_epoch(stack.data.samples, course.batch), course.epochs)
    with recipe.products(stack.training, members.device):
        fit(members, stack.data, stack.objective, course, history, after_step, stack.clock)


def select_splits(splits: Iterable[str], epochs: int) -> list[str]:
    """Return the splits on which a cell is evaluated at the end. For an untrained network, training samples are like any others, so the
    test split suffices, and a large network would spend minutes on the rest."""
    names = list(splits)
    return [name for name in names if name != TRAIN or epochs or TEST not in names]


def compute_means(sums: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return every metric (K,) of a split."""
    return {metric: value / sums[count_of(metric, sums)] for metric, value in sums.items() if not is_count(metric)}


def describe_ending(members: Members, k: int, final: dict[str, dict[str, float]]) -> dict[str, Any]:
    """Return the status, reason and number of steps of a member. The loss of a member that no step has shown to diverge may still not be
    finite: at initialisation, after its last step, or on the test set alone."""
    status, steps = int(members.status[k]), int(members.last_step[k])
    reasons = {
        RUNNING: "",
        STOPPED: "stop_loss reached",
        DIVERGED: f"loss or gradient not finite at step {steps + 1}",
    }
    nowhere = [split for split, found in final.items() if not math.isfinite(found["loss"])]
    if status != DIVERGED and nowhere:
        first = min(nowhere, key=lambda split: (split != TRAIN, split))  # in a fixed order of splits
        status, reasons[DIVERGED] = DIVERGED, f"loss on {first} not finite after {steps} steps"
    return {"status": "diverged" if status == DIVERGED else "done", "reason": reasons[status], "steps": steps}
