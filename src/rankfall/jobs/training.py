"""One training job: find what the store has, train what is missing in stacks, keep every finished stack at once.

The arithmetic is in `loop` and `stack`; here is what surrounds it: looking up, checkpoints, signals, memory that runs out, cells
that fail. None of this is part of a cell's key.
"""

import hashlib
import platform
import resource
import signal
import socket
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rankfall import components
from rankfall.code.unchanged import Edited, check_unchanged
from rankfall.disk import StoreError
from rankfall.errors import told
from rankfall.jobs.trials import refused_cells
from rankfall.nets.network import Shape
from rankfall.tasks._dataset import Dataset, draw
from rankfall.train import loop
from rankfall.train.stack import DIVERGED, RUNNING, STOPPED, Stack

if TYPE_CHECKING:
    from rankfall.plan.cell import Cell
    from rankfall.store import CellRecord, LoadedStack, Store
    from rankfall.train.progress import Progress

ATTEMPTS = 4  # looks for cells that were in the store a moment ago, with training between
INTERRUPTED = 75  # exit code after a checkpoint on a signal (EX_TEMPFAIL): run the job again and it goes on


class Interrupted(Exception):
    """A signal asked to stop; the running stack has been checkpointed."""


@dataclass(frozen=True)
class Settings:
    device: torch.device
    stack: int = 32  # members at most
    checkpoint_seconds: float = 60.0


@dataclass(frozen=True)
class TrainingJob:
    """What all stacks of a job share."""

    store: "Store"
    settings: Settings
    progress: "Progress"
    code: "Callable[[Cell], dict[str, Any]]"  # what to record about a cell's origin
    stopped: Callable[[], str | None]  # the signal that asked to stop, if any


def train_cells(
    cells: "Sequence[Cell]",
    store: "Store",
    settings: Settings,
    progress: "Progress",
    code: "Callable[[Cell], dict[str, Any]]",
) -> None:
    """Leaves every cell in the store: done, diverged or failed. `code` says what to record about a cell's origin."""
    found = store.find_cells([cell.key for cell in cells], {cell.group for cell in cells})
    missing = [cell for cell in cells if cell.key not in found or found[cell.key].status == "failed"]
    progress.begin(total=len(cells), in_store=len(cells) - len(missing))
    with stop_signals() as stopped:
        job = TrainingJob(store, settings, progress, code, stopped)
        refused = refused_cells(missing, store, progress.note, lambda cell: shape_of(cell, dataset_of(cell, store)))
        for members in stacks([cell for cell in missing if cell.key in refused], settings.stack):
            fail(members, [refused[cell.key] for cell in members], 0.0, job)
        for members in stacks([cell for cell in missing if cell.key not in refused], settings.stack):
            train_some(members, job)
    progress.end()


def stacks(cells: "Sequence[Cell]", most: int) -> "Iterator[list[Cell]]":
    """The cells in stacks of no more than so many; who meets follows from the cells alone."""
    for _, group in groupby(sorted(cells, key=lambda cell: (cell.group, cell.seed, cell.key)), lambda cell: cell.group):
        members = list(group)
        for start in range(0, len(members), most):
            yield members[start : start + most]


def train_some(cells: "list[Cell]", job: TrainingJob) -> None:
    """One stack; halved where it does not fit into memory, or where something fails, until the cell that fails stands alone."""
    began = time.monotonic()
    reason = job.stopped()
    if reason:  # came while no step was taken, such as in an evaluation
        raise Interrupted(f"{reason} between stacks")
    try:
        train_stack(cells, job)
        return
    except (Interrupted, StoreError, Edited):  # a full disk is no fault of the cells
        raise
    except Exception as error:  # anything a component may raise
        check_code(cells)  # half an edit may well raise
        reason = reason_of(error)
        full = out_of_memory(error)
    job.store.drop_checkpoint(stack_id(cells))
    if len(cells) > 1:
        job.progress.note(f"{'out of memory' if full else reason}: halving a stack of {len(cells)}")
        for half in (cells[: len(cells) // 2], cells[len(cells) // 2 :]):
            train_some(half, job)
        return
    job.progress.note(f"failed: {cells[0].key}: {reason}")
    fail(cells, [reason], time.monotonic() - began, job)


def fail(cells: "list[Cell]", reasons: list[str], seconds: float, job: TrainingJob) -> None:
    """Keep that these cells of one group cannot be had, and why."""
    records = [
        {**job.code(cell), **machine(), "status": "failed", "reason": reason, "seconds": seconds}
        for cell, reason in zip(cells, reasons)
    ]
    job.store.save_stack(cells[0].group, [cell.key for cell in cells], {"none": torch.zeros(len(cells))}, records, {})
    job.progress.cells_done(len(cells))


def train_stack(cells: "list[Cell]", job: TrainingJob) -> None:
    store, progress = job.store, job.progress
    datasets = [dataset_of(cell, store) for cell in cells]
    shape = shape_of(cells[0], datasets[0])
    stack = Stack(cells, shape, job.settings.device)
    data = loop.Data.of(datasets, getattr(torch, cells[0].training.dtype), job.settings.device)
    history = loop.new_history(stack)
    identity = stack_id(cells)
    seconds = 0.0
    checkpoint = store.load_checkpoint(identity, [cell.key for cell in cells])
    if checkpoint is not None:
        tensors, meta = checkpoint
        stack.restore({name.removeprefix("stack."): t for name, t in tensors.items() if name.startswith("stack.")})
        for name, value in history.items():
            value.copy_(tensors[f"history.{name}"])
        seconds = meta["seconds"]
        progress.note(f"resuming a stack of {len(cells)} at step {stack.step_count}")
    began = saved = time.monotonic()

    def after_step() -> None:
        nonlocal saved
        now = time.monotonic()
        progress.step(len(cells), stack, history)
        reason = job.stopped()
        if reason or now - saved >= job.settings.checkpoint_seconds:
            state = {f"stack.{name}": value for name, value in stack.state().items()}
            state |= {f"history.{name}": value for name, value in history.items()}
            about = {"seconds": seconds + now - began, "step": stack.step_count, "cells": [cell.key for cell in cells]}
            check_code(cells)
            store.save_checkpoint(identity, state, about)
            saved = time.monotonic()
        if reason:
            raise Interrupted(f"{reason} at step {stack.step_count}")

    progress.begin_stack(len(cells), loop.steps_per_epoch(data.train_inputs.shape[1], stack.training.batch), stack)
    targets = shape.targets
    loop.train(stack, data, targets, history, after_step)
    train_loss, train_accuracy = loop.evaluate(stack, data, targets, "train")
    test_loss, test_accuracy = loop.evaluate(stack, data, targets, "test")
    seconds += time.monotonic() - began
    finished = {
        "train_loss": train_loss,
        "train_accuracy": train_accuracy,
        "test_loss": test_loss,
        "test_accuracy": test_accuracy,
    }
    records = []
    for member, cell in enumerate(cells):
        fate = int(stack.fate[member])
        steps = int(stack.last_step[member])
        record = {
            **job.code(cell),
            **machine(),
            "status": "diverged" if fate == DIVERGED else "done",
            "reason": {
                RUNNING: "",
                STOPPED: "stop_loss reached",
                DIVERGED: f"loss or gradient not finite at step {steps + 1}",
            }[fate],
            "steps": steps,
            "seconds": seconds / len(cells),
            "megabytes": peak_megabytes(),
            "chance": datasets[member].chance,
            "device": str(job.settings.device),
            "dtype": cell.training.dtype,
            "threads": torch.get_num_threads(),
            "stack": identity,
            **{name: float(value[member]) for name, value in finished.items()},
        }
        records.append(record)
    tensors = stack.tensors() | {f"history.{name}": value for name, value in history.items()}
    check_code(cells)
    store.save_stack(cells[0].group, [cell.key for cell in cells], on_cpu(tensors), records, {"members": identity})
    store.drop_checkpoint(identity)
    progress.cells_done(len(cells))


def dataset_of(cell: "Cell", store: "Store") -> Dataset:
    """The data of a cell: made from its seed once, then read."""

    def make() -> Dataset:
        made = draw(components.load("task", cell.task.task.name), cell.seed, cell.task.task.options)
        check_unchanged(cell.data_code)
        return made

    return store.dataset(cell.data_key, make)


def check_code(cells: "Sequence[Cell]") -> None:
    """Raise if the code that these cells are named after was edited: what is in hand may be the new code's."""
    check_unchanged(*(cell.code for cell in cells))


def shape_of(cell: "Cell", dataset: Dataset) -> Shape:
    found = components.describe("task", cell.task.task.name)
    assert found is not None
    return Shape(found.facts["INPUTS"], found.facts["TARGETS"], dataset.length, dataset.size_in, dataset.size_out)


def recorded(
    cells: "Sequence[Cell]", store: "Store", train: "Callable[[Sequence[Cell]], None]"
) -> "dict[str, CellRecord]":
    """What the store says of each cell. What is gone since it was looked up, such as by cleaning, `train` makes good."""
    keys, groups = [cell.key for cell in cells], {cell.group for cell in cells}
    for _ in range(ATTEMPTS):
        found = store.find_cells(keys, groups)
        missing = [cell for cell in cells if cell.key not in found]
        if not missing:
            return found
        train(missing)
    raise _vanishing(missing, store)


def loaded(cells: "Sequence[Cell]", store: "Store", train: "Callable[[Sequence[Cell]], None]") -> "list[LoadedStack]":
    """Cells of one group with their tensors. Damage shows only when a file is read in full: then the store sets it aside,
    and `train` makes good what is gone."""
    keys, group = [cell.key for cell in cells], cells[0].group
    for _ in range(ATTEMPTS):
        stacks = store.load_cells(keys, group)
        there = {key for stack in stacks for key in stack.keys}
        missing = [cell for cell in cells if cell.key not in there]
        if not missing:
            return stacks
        train(missing)
    raise _vanishing(missing, store)


def _vanishing(cells: "Sequence[Cell]", store: "Store") -> StoreError:
    what = (
        f"{len(cells)} cells ({cells[0].key}, ...) vanished from {store.root} again and again after they were trained"
    )
    return StoreError(f"{what}: something removes or damages its files; mend that and run again")


def stack_id(cells: "Sequence[Cell]") -> str:
    return hashlib.sha256(" ".join(cell.key for cell in cells).encode()).hexdigest()[:24]


def on_cpu(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().cpu().contiguous() for name, value in tensors.items()}


def machine() -> dict[str, Any]:
    """What computes here."""
    versions = {"python": platform.python_version(), "torch": str(torch.__version__), "numpy": np.__version__}
    return {"host": socket.gethostname(), "versions": versions}


def peak_megabytes() -> int:
    """The most memory that this process has used so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def reason_of(error: Exception) -> str:
    """An error in one line: what, and where."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{told(error)} ({last.filename}:{last.lineno})"


def out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)


@contextmanager
def stop_signals() -> Iterator[Callable[[], str | None]]:
    """Within, SIGTERM and SIGUSR1 (SLURM's warning before a time limit) are remembered; the running step ends first."""
    received: list[str] = []

    def remember(number: int, frame: FrameType | None) -> None:
        received.append(signal.Signals(number).name)

    before = {number: signal.signal(number, remember) for number in (signal.SIGTERM, signal.SIGUSR1)}
    try:
        yield lambda: received[0] if received else None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
