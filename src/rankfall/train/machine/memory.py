"""What a step reads and writes beside the members' own rows, and where all of it lies: numbers behind each buffer may be read."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rankfall.train.machine.codes import BUFFERS
from rankfall.train.machine.descent import CHANGES, OF_MEMBER
from rankfall.train.machine.program.build import Program
from rankfall.train.machine.runtime import room
from rankfall.train.members import Members

SPARE = 64  # numbers behind each buffer
OUTS = 64


@dataclass(eq=False)
class Memory:
    """What a step of one form reads and writes, beside the members' own rows."""

    given: tuple[np.ndarray, ...]  # (K, N) of each tensor of a batch
    out: np.ndarray  # (K, OUTS)
    rates: np.ndarray  # (K, RATES)
    changing: np.ndarray  # (CHANGES,)
    step: np.ndarray  # (1,)
    constants: np.ndarray

    @staticmethod
    def of(count: int, program: Program | None, shapes: Sequence[tuple[int, ...]], dtype: np.dtype) -> "Memory":
        """For so many members. `shapes`: of what a batch holds of each."""
        fixed = np.zeros(0) if program is None else program.constants
        constants = numbers(fixed.size, dtype)
        constants[:] = fixed
        given = tuple(rows(count, int(np.prod(shape)), dtype) for shape in shapes)
        own = rows(count, OUTS, dtype), rows(count, OF_MEMBER, dtype)
        return Memory(given, *own, numbers(CHANGES, dtype), np.zeros(1, np.uint64), constants)


def addresses(arrays: dict[int, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Of each buffer of the first member, and the bytes from there to the next member's; 0 where all have one."""
    bases, strides = np.zeros(BUFFERS, np.int64), np.zeros(BUFFERS, np.int64)
    for buffer, array in arrays.items():
        bases[buffer] = array.ctypes.data
        strides[buffer] = array.strides[0] if array.ndim > 1 else 0
    return bases, strides


def numbers(count: int, dtype: np.dtype) -> np.ndarray:
    """Zeros (count,), behind which numbers may be read."""
    found: np.ndarray = room(count + SPARE, dtype)[:count]
    return found


def move(members: Members, dtype: np.dtype) -> None:
    """Has weights, gradients and what the optimiser remembers lie where numbers behind them may be read."""

    def move_rows(rows: Tensor) -> Tensor:
        return torch.from_numpy(numbers(rows.numel(), dtype)).view(rows.shape).copy_(rows)

    members.weights, members.grads = move_rows(members.weights), move_rows(members.grads)
    members.slots = tuple(move_rows(slot) for slot in members.slots)
    start = 0
    for value in members.parameters:
        size = value[0].numel()
        value.data = members.weights[:, start : start + size].view(value.shape)
        start += size


def rows(count: int, each: int, dtype: np.dtype) -> np.ndarray:
    """One of each member (K, each)."""
    return numbers(count * each, dtype).reshape(count, each)
