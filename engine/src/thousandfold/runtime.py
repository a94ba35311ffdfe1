"""The machine that runs programs from Python. Each thread has one, with its scratch memory."""

from functools import partial
from typing import Any

import numpy as np

from thousandfold import cache, codes
from thousandfold.kernels.interpreter import run_members
from thousandfold.memory import room

# Prefixes of the modules from which the machine is compiled.
SOURCES = ("thousandfold.kernels.", "thousandfold.codes", "thousandfold.layouts", "thousandfold.operations")
NOTHING = np.zeros(1, np.int64)


def prepare(dtype: str) -> None:
    """Load the machine for a number format from the cache, or compile it first. Called once per process and format."""
    cache.ready(run_members, ARGUMENTS[dtype], SOURCES)


def is_compiled(dtype: str) -> bool:
    """Return whether the cache has the machine for a number format."""
    folder = cache.cache_folder(SOURCES)
    return folder is not None and cache.is_kept(run_members, ARGUMENTS[dtype](), folder)


def prepare_all() -> None:
    """Prepare the machine for every number format, as `make setup` does."""
    for dtype in ARGUMENTS:
        prepare(dtype)


def zero_arguments(dtype: str) -> tuple[Any, ...]:
    """Return arguments of `run_members` for zero members."""
    integers = np.zeros(1, np.int64)
    return np.zeros(1, dtype), *(integers,) * 3, 0, 0, 0, *(integers,) * 4


ARGUMENTS = {dtype: partial(zero_arguments, dtype) for dtype in ("float32", "float64")}


class Machine:
    def __init__(self, dtype: Any) -> None:
        prepare(np.dtype(dtype).name)
        self.scratch = room(codes.REGISTERS * codes.APART + codes.ROOM, dtype)
        self.table = np.zeros(codes.TABLE + codes.BUFFERS, np.int64)
        registers = np.arange(codes.REGISTERS) * codes.APART * self.scratch.itemsize
        self.table[: codes.REGISTERS] = self.scratch.ctypes.data + registers

    def run(
        self,
        program: np.ndarray,
        count: int,
        bases: np.ndarray,
        strides: np.ndarray,
        first: int,
        last: int,
        optimiser: np.ndarray | None = None,
        instructions: int = 0,
        weights: int = 0,
        alive: np.ndarray = NOTHING,
    ) -> None:
        """Run a program for members first .. last - 1 and, where gradient and loss are finite, the optimiser's `instructions`."""
        steps, after = (0, NOTHING) if optimiser is None else (1, optimiser)
        counts = np.array([count, instructions, weights])
        run_members(self.scratch, self.table, bases, strides, first, last, steps, program, after, counts, alive)
