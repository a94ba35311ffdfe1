"""The machine on a GPU. One kernel takes a step of all members; each block of threads computes one member after another.

The program is that of the CPU, except which sums are fused into pointwise groups (`pointwise.py`). A step does not wait for the GPU.
Results of a member do not depend on its stack, because a block always has the same number of threads.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from thousandfold.codes import ARENA
from thousandfold.engine import STRAYED, Engine, PreparedStep, Results, read_results
from thousandfold.errors import EngineError
from thousandfold.gpu.compiled import Launch, load_kernel
from thousandfold.gpu.pointwise import split_of
from thousandfold.gpu.write import Kernel, write_kernel
from thousandfold.memory import SPARE, Zeros
from thousandfold.optimizers import Rows
from thousandfold.program.build import Program

# Threads of a block, and concurrent blocks of a multiprocessor: the fastest values tried on an H200.
THREADS, BLOCKS = 512, 2
SHARED = 11_776  # float32 numbers of shared memory that a block has by default
ARENAS = 0.25  # largest fraction of the GPU's memory for the arenas of blocks


class GpuEngine(Engine):
    device_type = "cuda"
    divide = staticmethod(split_of)
    load: Callable[[str, str, torch.device], Launch] = staticmethod(load_kernel)

    def __init__(self, members: Rows, keys: Tensor) -> None:
        super().__init__(members, keys)
        self.kernels: dict[tuple[Program, Program | None], tuple[Kernel, Tensor]] = {}  # with its records on the GPU
        self.arena = torch.empty(0, dtype=members.weights.dtype, device=members.device)
        self.bases: dict[bytes, Tensor] = {}
        self.strayed = torch.zeros((), dtype=torch.bool, device=members.device)

    def own_zeros(self, members: Rows) -> Zeros:
        return lambda count: members.weights.new_zeros(count + SPARE)[:count]

    def steps_at_once(self, members: int) -> int:
        return 1

    def check_strayed(self) -> None:
        """Raise if an index of an earlier step was outside of its table. This waits for the GPU."""
        if self.strayed:
            raise EngineError(STRAYED)

    def compute(self, members: Rows, launches: Sequence[PreparedStep], alive: Tensor) -> Tensor:
        running = torch.empty(len(launches), len(members), dtype=torch.bool, device=members.device)
        for step, launch in enumerate(launches):
            self.launch_kernel(launch.program.program, launch.descent, members, launch.bases, launch.strides, alive)
            running[step] = alive != 0
        return running

    def run_descent(self, program: Program, members: Rows, bases: np.ndarray, strides: np.ndarray) -> None:
        self.launch_kernel(program, None, members, bases, strides, torch.ones_like(members.status))

    def launch_kernel(
        self,
        program: Program,
        descent: Program | None,
        members: Rows,
        bases: np.ndarray,
        strides: np.ndarray,
        alive: Tensor,
    ) -> None:
        kernel, records = self.find_kernel(program, descent, members.device)
        launch = self.load(kernel.text, "steps", members.device)
        blocks = count_blocks(len(members), kernel.arena * self.numbers.itemsize, members.device)
        if self.arena.numel() < blocks * kernel.arena:
            self.arena = members.weights.new_empty(blocks * kernel.arena)
        steps = kernel.instructions, len(kernel.records) - kernel.instructions
        arguments = [records, *steps, self.on_device(bases, strides), self.arena, kernel.arena]
        sizes = [len(members), members.weights.shape[1], alive]
        launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), args=[*arguments, *sizes])

    def find_kernel(self, program: Program, descent: Program | None, device: torch.device) -> tuple[Kernel, Tensor]:
        if (program, descent) not in self.kernels:
            kernel = write_kernel(
                program, descent, self.numbers.name, THREADS, BLOCKS, SHARED * 4 // self.numbers.itemsize
            )
            self.kernels[program, descent] = kernel, torch.from_numpy(kernel.records).to(device)
        return self.kernels[program, descent]

    def on_device(self, bases: np.ndarray, strides: np.ndarray) -> Tensor:
        """Return addresses and strides (2 BUFFERS,) on the GPU, cached because they rarely change."""
        bases[ARENA] = strides[ARENA] = 0  # each block has its own arena
        addresses = np.concatenate([bases, strides])
        if addresses.tobytes() not in self.bases:
            self.bases[addresses.tobytes()] = torch.from_numpy(addresses).to(self.strayed.device)
        return self.bases[addresses.tobytes()]

    def check_range(self, values: Tensor, below: int) -> None:
        """Check a range without waiting for the GPU. The next call of `check_strayed` raises the error."""
        self.strayed |= ((values < 0) | (values >= below)).any()

    def read(self, step: PreparedStep) -> Results:
        if step.program.strayed is not None:
            self.strayed |= (step.memory.out[:, step.program.strayed] != 0).any()
        return read_results(step.program, step.memory.out)


def count_blocks(members: int, arena: int, device: torch.device) -> int:
    """Return the number of blocks that the GPU runs at once, limited by the memory for their arenas of `arena` bytes each."""
    if device.type != "cuda":
        return 1
    properties = torch.cuda.get_device_properties(device)
    room = int(ARENAS * properties.total_memory) // arena
    return max(1, min(members, BLOCKS * properties.multi_processor_count, room))
