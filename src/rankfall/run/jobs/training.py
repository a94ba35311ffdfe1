"""A training job: find what the store has, train what is missing in stacks, keep every finished stack at once."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rankfall.nets.network import Shape
from rankfall.run.guards.shares import check_shares
from rankfall.run.guards.watch import numerics
from rankfall.run.jobs.agreement import check_agreement
from rankfall.run.jobs.cells import check_code, dataset_of, datasets_of, shape_of, stacked
from rankfall.run.jobs.engine import (
    Engine,
    Settings,
    StackCheckpoint,
    machine,
    on_cpu,
    peak_megabytes,
    stacks,
    stop_signals,
)
from rankfall.run.jobs.memory import members_at_once
from rankfall.run.jobs.trials import refused_cells
from rankfall.run.jobs.zeros import check_zeros
from rankfall.run.plan.engines import FUSED, MACHINE, PLAIN, check_installed
from rankfall.tasks._dataset import TEST, TRAIN
from rankfall.train import recipe
from rankfall.train.clock import StepClock
from rankfall.train.data import Data, steps_per_epoch
from rankfall.train.device import large_blocks_apart
from rankfall.train.fit import evaluate, fit
from rankfall.train.history import TrainingHistory, count_of, is_count
from rankfall.train.members import DIVERGED, RUNNING, STOPPED, Members, StepEngine
from rankfall.train.objectives._base import Objective
from rankfall.train.resume import prefixed, restore, state_of

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
    """Leaves every cell in the store: done, diverged or failed. `code` says what to record about a cell's origin."""
    check_installed({cell.engine for cell in cells})
    found = store.find_cells([cell.key for cell in cells], {cell.group for cell in cells})
    missing = [cell for cell in cells if cell.key not in found or found[cell.key].status == "failed"]
    prepare({cell.engine for cell in missing})  # what keeps kernels from running is no cell's fault
    progress.begin(total=len(cells), in_store=len(cells) - len(missing))
    with stop_signals() as stopped:
        job = TrainingWork(store, settings, progress, code, stopped)
        refused = refused_cells(missing, store, progress.note, lambda cell: dataset_of(cell, store))
        for cells in stacks([cell for cell in missing if cell.key in refused], settings.stack):
            fail(cells, [refused[cell.key] for cell in cells], 0.0, job)
        passed = [cell for cell in missing if cell.key not in refused]
        untraced = check_agreement(passed, store, progress.note)
        check_zeros([cell for cell in passed if cell.group not in untraced], store, progress.note)
        job = replace(job, untraced=untraced)
        most = partial(members_at_once, settings=settings)
        for _ in Engine(job, store, most, stopped).run(passed):
            pass
    progress.end()


@dataclass(frozen=True)
class TrainingWork:
    """The work of a training job: one stack at a time, resumed where a checkpoint says."""

    store: "Store"
    settings: Settings
    progress: "Progress"
    code: "Callable[[Cell], dict[str, Any]]"
    stopped: Callable[[], str | None]  # the signal that asked to stop, if any
    untraced: Collection[str] = ()  # groups that the machine was to train and cannot trace

    def stack(self, cells: "list[Cell]") -> None:
        with numerics(*(cell.code for cell in cells)):
            train_stack(cells, self)

    def failed(self, cell: "Cell", reason: str, error: Exception, seconds: float) -> None:
        self.progress.note(f"failed: {cell.key}: {reason}")
        fail([cell], [reason], seconds, self)

    def keys(self, cells: "Sequence[Cell]") -> list[str]:
        return [cell.key for cell in cells]

    def check(self, cells: "Sequence[Cell]") -> None:
        check_code(cells)

    def note(self, text: str) -> None:
        self.progress.note(text)


def fail(cells: "list[Cell]", reasons: list[str], seconds: float, job: TrainingWork) -> None:
    """Keep that these cells of one group cannot be had, and why."""
    records = [
        {**job.code(cell), **machine(), "status": "failed", "reason": reason, "seconds": seconds}
        for cell, reason in zip(cells, reasons)
    ]
    job.store.save_stack(cells[0].group, job.keys(cells), {"none": torch.zeros(len(cells))}, records, {})
    job.progress.cells_done(len(cells))


def train_stack(cells: "list[Cell]", job: TrainingWork) -> None:
    """Trains cells of one group from the beginning or from their checkpoint, and keeps them."""
    datasets = datasets_of(cells, job.store)
    shape = shape_of(cells[0], datasets[0])
    trainings = [cell.training for cell in cells]
    device = job.settings.device
    members = recipe.initial(cells[0].architecture, shape, [cell.seed for cell in cells], trainings, device)
    engine = PLAIN if cells[0].group in job.untraced else cells[0].engine
    members.engine = engine_of(engine, cells[0], members, shape)
    data, objective = stacked(cells, datasets, device), recipe.objective(trainings[0])
    history = TrainingHistory(len(cells), trainings[0].epochs, device)
    checkpoint = checkpoint_of(cells, job)
    resume(members, history, checkpoint, job.progress)
    clock = StepClock(device)
    with recipe.products(trainings[0], device):
        train(members, data, objective, cells, history, checkpoint, job.progress, clock)
    with large_blocks_apart(), recipe.products(trainings[0], device):
        splits = told(data.splits, trainings[0].epochs)
        sums = {split: evaluate(members, data, objective, split) for split in splits}
    for split, of in {**sums, "": history.tensors}.items():
        check_shares(trainings[0].objective.name, of, split)
    final = {split: means_of(of) for split, of in sums.items()}
    shared = {
        "seconds": checkpoint.seconds / len(cells),
        "megabytes": peak_megabytes(),
        "device": str(device),
        "engine": members.engine.name if members.engine else "plain",
        "dtype": trainings[0].dtype,
        "threads": torch.get_num_threads(),
        "stack": checkpoint.identity,
        "together": len(cells),
        "step_ms": None if clock.step_seconds is None else 1000 * clock.step_seconds / len(cells),
    }
    metrics = [
        {split: {name: float(v[k]) for name, v in found.items()} for split, found in final.items()}
        for k in range(len(cells))
    ]
    records = [
        {**job.code(cell), **machine(), **shared, **ending(members, k, metrics[k]), "chance": float(data.chance[k])}
        | {"final": metrics[k]}
        for k, cell in enumerate(cells)
    ]
    tensors = members.tensors() | prefixed("history", history.tensors)
    check_code(cells)
    job.store.save_stack(cells[0].group, job.keys(cells), on_cpu(tensors), records, {"members": checkpoint.identity})
    checkpoint.drop()
    job.progress.cells_done(len(cells))


def engine_of(engine: str, cell: "Cell", members: Members, shape: Shape) -> StepEngine | None:
    """The engine of a group's steps; None: through autograd. Both others need numba, which not everybody has."""
    if engine == FUSED:
        from rankfall.train.fused.engine import Fused

        return Fused(members, cell.architecture, cell.training)
    if engine == MACHINE:
        from rankfall.train.machine.engine import Machined

        return Machined(members, cell.architecture, shape, cell.training)
    return members.engine


def prepare(engines: set[str]) -> None:
    """Has the kernels of these engines compiled."""
    if FUSED in engines:
        from rankfall.train.fused import engine as fused

        fused.prepare()
    if MACHINE in engines:
        from rankfall.train.machine import engine as traced

        traced.prepare()


def checkpoint_of(cells: "Sequence[Cell]", job: TrainingWork) -> StackCheckpoint:
    every = job.settings.checkpoint_seconds
    return StackCheckpoint(job.store, job.keys(cells), every, job.stopped, lambda: job.check(cells))


def resume(members: Members, history: TrainingHistory, checkpoint: StackCheckpoint, progress: "Progress") -> None:
    """Puts members and history where the last checkpoint left them, if there is one."""
    found = checkpoint.load(TRAINING)
    if found is not None:
        restore(members, history, found)
        progress.note(f"resuming a stack of {len(members)} at step {members.step_count}")


def train(
    members: Members,
    data: Data,
    objective: Objective,
    cells: "Sequence[Cell]",
    history: TrainingHistory,
    checkpoint: StackCheckpoint,
    progress: "Progress",
    clock: StepClock,
) -> None:
    """`fit`, with a checkpoint and a progress display."""
    course = recipe.course(cells[0].training)

    def after_step() -> None:
        progress.step(members, history)
        checkpoint.after_step(TRAINING, members.step_count, lambda: state_of(members, history))

    progress.begin_stack(members, steps_per_epoch(data.samples, course.batch), course.epochs)
    fit(members, data, objective, course, history, after_step, clock)


def told(splits: Iterable[str], epochs: int) -> list[str]:
    """The splits that a cell is evaluated on at the end. To an untrained network, samples that it could have been trained on are like any
    others: those to test on say all, and a large network would spend minutes on the rest.
    """
    names = list(splits)
    return [name for name in names if name != TRAIN or epochs or TEST not in names]


def means_of(sums: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Every metric (K,) of a split."""
    return {metric: value / sums[count_of(metric, sums)] for metric, value in sums.items() if not is_count(metric)}


def ending(members: Members, k: int, final: dict[str, dict[str, float]]) -> dict[str, Any]:
    """How a member ended. One that no step has shown to diverge may have outputs that are no numbers all the same: at initialisation,
    after its last step, or on the test set alone.
    """
    fate, steps = int(members.fate[k]), int(members.last_step[k])
    reasons = {
        RUNNING: "",
        STOPPED: "stop_loss reached",
        DIVERGED: f"loss or gradient not finite at step {steps + 1}",
    }
    nowhere = [split for split, found in final.items() if not math.isfinite(found["loss"])]
    if fate != DIVERGED and nowhere:
        first = min(nowhere, key=lambda split: (split != TRAIN, split))  # in whatever order the splits were read
        fate, reasons[DIVERGED] = DIVERGED, f"loss on {first} not finite after {steps} steps"
    return {"status": "diverged" if fate == DIVERGED else "done", "reason": reasons[fate], "steps": steps}
