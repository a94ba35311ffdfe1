"""Memory of a step besides the members' rows, and the addresses of all buffers. Numbers behind each buffer may be read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from thousandfold.codes import BUFFERS
from thousandfold.descent import CHANGES, OF_MEMBER
from thousandfold.program.build import Program
from thousandfold.rows import Rows
from thousandfold.runtime import room

SPARE = 64  # extra numbers behind each buffer
OUTS = 64


@dataclass(eq=False)
class Memory:
    """The buffers of a step of one form, besides the members' rows."""

    given: tuple[Tensor, ...]  # (K, N) for each tensor of a batch
    out: Tensor  # (K, OUTS)
    rates: Tensor  # (K, RATES)
    changing: Tensor  # (CHANGES,)
    step: Tensor  # (1,), integer
    constants: Tensor

    @staticmethod
    def of(count: int, program: Program | None, shapes: Sequence[tuple[int, ...]], zeros: "Zeros") -> "Memory":
        """Allocate memory for `count` members. `shapes`: shape per member of each tensor of a batch."""
        fixed = np.zeros(0) if program is None else program.constants
        constants = zeros(fixed.size)
        constants.copy_(torch.from_numpy(fixed))
        given = tuple(rows(zeros, count, int(np.prod(shape))) for shape in shapes)
        own = rows(zeros, count, OUTS), rows(zeros, count, OF_MEMBER)
        step = torch.zeros(1, dtype=torch.int64, device=constants.device)
        return Memory(given, *own, zeros(CHANGES), step, constants)


Zeros = Callable[[int], Tensor]  # count -> zeros (count,) followed by readable memory


def addresses(tensors: dict[int, Tensor]) -> tuple[np.ndarray, np.ndarray]:
    """Return the address of each buffer of the first member, and the bytes from member to member, or 0 for a shared buffer."""
    bases, strides = np.zeros(BUFFERS, np.int64), np.zeros(BUFFERS, np.int64)
    for buffer, tensor in tensors.items():
        bases[buffer] = tensor.data_ptr()
        strides[buffer] = tensor.stride(0) * tensor.element_size() if tensor.dim() > 1 else 0
    return bases, strides


def on_pages(dtype: np.dtype) -> Zeros:
    """Return a function that allocates zeros on large pages."""
    return lambda count: torch.from_numpy(room(count + SPARE, dtype)[:count])


def move(members: Rows, zeros: Zeros) -> None:
    """Move weights, gradients and slots of the optimiser to memory that is followed by readable memory."""

    def move_rows(rows: Tensor) -> Tensor:
        return zeros(rows.numel()).view(rows.shape).copy_(rows)

    members.weights, members.grads = move_rows(members.weights), move_rows(members.grads)
    members.slots = tuple(move_rows(slot) for slot in members.slots)
    start = 0
    for value in members.parameters:
        size = value[0].numel()
        value.data = members.weights[:, start : start + size].view(value.shape)
        start += size


def rows(zeros: Zeros, count: int, each: int) -> Tensor:
    """Allocate one row per member (K, each)."""
    return zeros(count * each).view(count, each)


def to_device(values: Tensor, device: torch.device) -> Tensor:
    """Copy values to the device without waiting."""
    return values.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else values.to(device)
