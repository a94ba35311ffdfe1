"""Helpers of training and measuring jobs: stacks and their sizes, checkpoints, signals, failures.

Nothing here is part of a key.
"""

import hashlib
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rankfall.errors import RankfallError, describe_error, frames_of_users
from rankfall.run.guards import check_files
from rankfall.run.plan.cell import Cell
from rankfall.run.plan.cost import member_megabytes
from rankfall.run.plan.engines import MACHINE_GPU
from rankfall.run.store import Store
from rankfall.train.loop import add_prefix, strip_prefix

if TYPE_CHECKING:
    from rankfall.train.machine.engine import Machined

INTERRUPTED = 75  # exit code after a checkpoint on a signal (EX_TEMPFAIL): a rerun of the job resumes
Stopped = Callable[[], str | None]  # returns the signal that asked to stop, if any
SHARE = 0.7  # share of a GPU's free memory that a stack may need by its estimate, which is rough


class Interrupted(Exception):
    """A signal asked the job to stop. The state of the running stack is saved."""


@dataclass(frozen=True)
class Settings:
    """The device, stack size, checkpoints and workers of a job."""

    device: torch.device
    stack: int = 32  # members at most
    checkpoint_seconds: float = 60.0
    curves: Path | None = None  # folder of TensorBoard's files; None: write none
    workers: int = 1  # processes that compute stacks at the same time
    command: Sequence[str] = ()  # arguments of `rankfall` that start a worker


class StackCheckpoint:
    """A checkpoint of a stack, saved on a timer, and at once if a signal asks to stop. Its parts have names and follow one another."""

    def __init__(self, store: Store, keys: Sequence[str], interval: float, stopped: Stopped) -> None:
        self.store, self.interval, self.stopped = store, interval, stopped
        self.identity, self.keys = stack_id(keys), list(keys)
        self.parts: dict[str, Callable[[], Mapping[str, Tensor]]] | None = None  # None: not yet loaded
        self.before = 0.0  # seconds of earlier, interrupted jobs
        self.began = self.saved = time.monotonic()

    def load(self, name: str) -> Mapping[str, Tensor] | None:
        """Return the tensors of this part in the last checkpoint, if it exists."""
        if self.parts is None:
            stored = self.store.load_checkpoint(self.identity, self.keys)
            tensors, record = stored or ({}, {"seconds": 0.0, "parts": []})
            self.before = record["seconds"]
            self.parts = {part: partial(strip_prefix, part, tensors) for part in record["parts"]}
        return self.parts[name]() if name in self.parts else None

    @property
    def seconds(self) -> float:
        return self.before + time.monotonic() - self.began

    def after_step(self, name: str, step: int, state: Callable[[], Mapping[str, Tensor]]) -> None:
        """Save the state of all parts if it is time to, and raise `Interrupted` if a signal came."""
        reason = self.stopped()
        self.parts = {**(self.parts or {}), name: state}
        if reason or time.monotonic() - self.saved >= self.interval:
            check_files()
            record = {"seconds": self.seconds, "step": step, "cells": self.keys, "parts": list(self.parts)}
            tensors = {
                k: v for part, part_state in self.parts.items() for k, v in add_prefix(part, part_state()).items()
            }
            self.store.save_checkpoint(self.identity, tensors, record)
            self.saved = time.monotonic()
        if reason:
            raise Interrupted(f"{reason} at step {step}")

    def drop(self) -> None:
        self.store.drop_checkpoint(self.identity)


def raise_if_stopped(stopped: Stopped) -> None:
    """Raise `Interrupted` if a signal came outside of a step, such as in an evaluation."""
    if reason := stopped():
        raise Interrupted(f"{reason} between stacks")


def stacks(cells: Sequence[Cell], most: int | Callable[[Cell], int]) -> Iterator[list[Cell]]:
    """Yield the cells in stacks of at most a fixed size. The division depends only on that size and the cells."""
    for _, group in groupby(sorted(cells, key=lambda cell: (cell.group, cell.seed, cell.key)), lambda cell: cell.group):
        members = list(group)
        size = most if isinstance(most, int) else most(members[0])
        for start in range(0, len(members), size):
            yield members[start : start + size]


def members_at_once(cell: Cell, settings: Settings) -> int:
    """Return how many cells of the group are trained at once: as many as the configuration allows and, on a GPU, its free memory holds.

    The latter number is a power of two, so that a restarted job with slightly less memory has the same stacks and finds their checkpoints.
    The job halves a stack that turns out to be too large."""
    if settings.device.type != "cuda":
        return settings.stack
    member = member_megabytes(cell.task, cell.architecture, cell.training)
    sharing = -(-settings.workers // max(1, len(visible_gpus())))
    fit = max(1, int(SHARE * free_megabytes(settings.device) / sharing / member))
    return min(settings.stack, 2 ** (fit.bit_length() - 1))


def free_megabytes(device: torch.device) -> float:
    """Return the free memory of the device, including what PyTorch reserves for its next allocations."""
    free, _ = torch.cuda.mem_get_info(device)
    reserved = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return (free + reserved) / 2**20


def visible_gpus() -> list[str]:
    """Return the names of the GPUs that this process may use, in the form of CUDA_VISIBLE_DEVICES."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return [*map(str, range(torch.cuda.device_count()))] if visible is None else [*filter(None, visible.split(","))]


def machine_of(engine: str) -> "type[Machined]":
    """Return the class of an engine of `plan/engines.py`. It requires numba, an optional dependency."""
    if engine == MACHINE_GPU:
        from rankfall.train.machine.gpu import MachinedOnGpu

        return MachinedOnGpu
    from rankfall.train.machine.engine import Machined

    return Machined


def stack_id(keys: Iterable[str]) -> str:
    return hashlib.sha256(" ".join(keys).encode()).hexdigest()[:24]


def describe_failure(error: Exception) -> str:
    """Describe an error and its location in a line: the last line of a user's file, rather than of a library. An error of this package
    names its own cause."""
    local = frames_of_users(error)
    if isinstance(error, RankfallError) and not local:
        return describe_error(error)
    last = (local or traceback.extract_tb(error.__traceback__))[-1]
    return f"{describe_error(error)} ({last.filename}:{last.lineno})"


def is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)


@contextmanager
def stop_signals(worker: bool = False) -> Iterator[Stopped]:
    """Record SIGTERM and SIGUSR1 (SLURM's warning before a time limit) within the context, so that the running step can end first.

    A worker also stops when its job has ended."""
    received: list[str] = []
    job = os.getppid()

    def remember(number: int, frame: FrameType | None) -> None:
        received.append(signal.Signals(number).name)

    before = {number: signal.signal(number, remember) for number in (signal.SIGTERM, signal.SIGUSR1)}
    try:
        yield lambda: received[0] if received else "the end of its job" if worker and os.getppid() != job else None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
