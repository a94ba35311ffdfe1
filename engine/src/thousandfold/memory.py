"""Memory of a step besides the members' rows, and the addresses of all buffers. Numbers behind each buffer may be read."""

import mmap
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from thousandfold.codes import BUFFERS
from thousandfold.descent import CHANGES, OF_MEMBER
from thousandfold.optimizers import Rows
from thousandfold.program.build import Program

SPARE = 64  # extra numbers behind each buffer, as many as a vector may read past the end
LARGE = 2**21  # bytes of a large page (madvise), on x86 and ARM
OUTS = 64


@dataclass(eq=False)
class Memory:
    """The buffers of a step of one form, besides the members' rows."""

    batch: tuple[Tensor, ...]  # (K, N) for each tensor of a batch
    out: Tensor  # (K, OUTS)
    rates: Tensor  # (K, RATES)
    changing: Tensor  # (CHANGES,)
    step: Tensor  # (1,), integer
    constants: Tensor

    @staticmethod
    def allocate(count: int, program: Program | None, shapes: Sequence[tuple[int, ...]], zeros: "Zeros") -> "Memory":
        """Allocate memory for `count` members. `shapes`: shape per member of each tensor of a batch."""
        fixed = np.zeros(0) if program is None else program.constants
        constants = zeros(fixed.size)
        constants.copy_(torch.from_numpy(fixed))
        batch = tuple(member_rows(zeros, count, int(np.prod(shape))) for shape in shapes)
        outputs = member_rows(zeros, count, OUTS), member_rows(zeros, count, OF_MEMBER)
        step = torch.zeros(1, dtype=torch.int64, device=constants.device)
        return Memory(batch, *outputs, zeros(CHANGES), step, constants)


Zeros = Callable[[int], Tensor]  # count -> zeros (count,) followed by readable memory


def addresses(tensors: dict[int, Tensor]) -> tuple[np.ndarray, np.ndarray]:
    """Return the address of each buffer of the first member, and the bytes from member to member, or 0 for a shared buffer."""
    bases, strides = np.zeros(BUFFERS, np.int64), np.zeros(BUFFERS, np.int64)
    for buffer, tensor in tensors.items():
        bases[buffer] = tensor.data_ptr()
        strides[buffer] = tensor.stride(0) * tensor.element_size() if tensor.dim() > 1 else 0
    return bases, strides


def room(count: int, dtype: Any) -> np.ndarray:
    """Return zeros (count + SPARE,) on large pages, or on small ones if the system has no others. A product reads hundreds of rows on
    different small pages, and the TLB of a processor holds only about seventy."""
    numbers = (count + SPARE) * (np.dtype(dtype).itemsize // 4)
    size = -(-4 * numbers // LARGE) * LARGE + LARGE
    try:
        held = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{size} bytes for activations") from error
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without them
            held.madvise(mmap.MADV_HUGEPAGE)
    whole = np.frombuffer(held, np.float32)
    first = -whole.ctypes.data % LARGE // 4
    return whole[first : first + numbers].view(dtype)


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


def member_rows(zeros: Zeros, count: int, size: int) -> Tensor:
    """Allocate one row of `size` numbers for each member (K, size)."""
    return zeros(count * size).view(count, size)


def to_device(values: Tensor, device: torch.device) -> Tensor:
    """Copy values to the device without waiting."""
    return values.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else values.to(device)
