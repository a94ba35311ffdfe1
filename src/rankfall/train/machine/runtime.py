"""What runs programs from Python: a machine is one thread's, and holds the room that it works in."""

from functools import partial
from typing import Any

import numpy as np

from rankfall.train.machine import cache, codes, pages
from rankfall.train.machine.kernels.interpreter import run_members

# What the names of the modules begin with that the machine is compiled of.
SOURCES = ("rankfall.train.machine.kernels.", "rankfall.train.machine.codes")
NOTHING = np.zeros(1, np.int64)


def room(count: int, dtype: Any) -> np.ndarray:
    """Zeros (count,) on large pages, and behind them as many as a vector may read too far."""
    each = np.dtype(dtype).itemsize // 4
    return pages.memory((count + 64) * each).view(dtype)


def prepare(dtype: str) -> None:
    """Has the machine compiled for numbers of a type, once for a process."""
    cache.ready(run_members, ARGUMENTS[dtype], SOURCES)


def prepare_all() -> None:
    """For every type of numbers."""
    for dtype in ARGUMENTS:
        prepare(dtype)


def of_its_types(dtype: str) -> tuple[Any, ...]:
    """Arguments for no member at all."""
    integers = np.zeros(1, np.int64)
    return np.zeros(1, dtype), *(integers,) * 3, 0, 0, 0, *(integers,) * 4


ARGUMENTS = {dtype: partial(of_its_types, dtype) for dtype in ("float32", "float64")}


class Machine:
    def __init__(self, dtype: Any) -> None:
        prepare(np.dtype(dtype).name)
        self.scratch = room(codes.REGISTERS * codes.APART + codes.ROOM, dtype)
        self.table = np.zeros(codes.TABLE + codes.BUFFERS, np.int64)

    def run(
        self, program: np.ndarray, count: int, bases: np.ndarray, strides: np.ndarray, first: int, last: int
    ) -> None:
        """A program for members first .. last - 1."""
        counts = np.array([count, 0, 0])
        run_members(self.scratch, self.table, bases, strides, first, last, 0, program, NOTHING, counts, NOTHING)

    def step(
        self,
        program: np.ndarray,
        count: int,
        optimiser: np.ndarray,
        instructions: int,
        bases: np.ndarray,
        strides: np.ndarray,
        first: int,
        last: int,
        weights: int,
        alive: np.ndarray,
    ) -> None:
        """The gradient, and where it and the loss are finite, the optimiser's program."""
        counts = np.array([count, instructions, weights])
        run_members(self.scratch, self.table, bases, strides, first, last, 1, program, optimiser, counts, alive)
