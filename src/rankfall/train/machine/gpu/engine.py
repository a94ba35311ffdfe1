"""The machine on a GPU. One kernel takes a step of all members; each block of threads computes one member after another.

The program is that of the CPU, except which sums are fused into pointwise groups (`pointwise.py`). A step does not wait for the GPU.
Results of a member do not depend on its stack, because a block always has the same number of threads.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from rankfall.design import Architecture, Training
from rankfall.errors import RankfallError
from rankfall.nets.network import Shape
from rankfall.train.machine.codes import ARENA
from rankfall.train.machine.engine import NO_CODE, STRAYED, Machined, PreparedStep, read_graded
from rankfall.train.machine.gpu.compiled import Launch, load_kernel
from rankfall.train.machine.gpu.pointwise import split_of
from rankfall.train.machine.gpu.write import Kernel, write_kernel
from rankfall.train.machine.memory import SPARE, Zeros
from rankfall.train.machine.program.build import Program
from rankfall.train.members import Members
from rankfall.train.objectives._base import Graded, Objective, Samples

# Threads of a block, and concurrent blocks of a multiprocessor: the fastest values tried on an H200.
THREADS, BLOCKS = 512, 2
SHARED = 11_776  # float32 numbers of shared memory that a block has by default
ARENAS = 0.25  # largest fraction of the GPU's memory for the arenas of blocks


class MachinedOnGpu(Machined):
    name, device_type = "machine_gpu", "cuda"
    divide = staticmethod(split_of)
    load: Callable[[str, str, torch.device], Launch] = staticmethod(load_kernel)

    def __init__(
        self,
        members: Members,
        architecture: Architecture,
        shape: Shape,
        training: Training,
        code: Mapping[str, str] = NO_CODE,
    ) -> None:
        super().__init__(members, architecture, shape, training, code)
        self.kernels: dict[tuple[Program, Program | None], tuple[Kernel, Tensor]] = {}  # with its records on the GPU
        self.arena = torch.empty(0, dtype=members.weights.dtype, device=members.device)
        self.bases: dict[bytes, Tensor] = {}
        self.strayed = torch.zeros((), dtype=torch.bool, device=members.device)

    def own_zeros(self, members: Members) -> Zeros:
        return lambda count: members.weights.new_zeros(count + SPARE)[:count]

    def steps_at_once(self, members: int) -> int:
        return 1

    def grade(self, members: Members, objective: Objective, batch: Samples) -> Graded:
        """Evaluate by PyTorch, since an evaluation is too small to be worth a kernel."""
        if self.strayed:  # checked here, because the caller reads the result and waits for the GPU anyway
            raise RankfallError(STRAYED)
        return objective(members.module, batch)

    def compute(self, members: Members, launches: Sequence[PreparedStep], alive: Tensor) -> Tensor:
        running = torch.empty(len(launches), len(members), dtype=torch.bool, device=members.device)
        for step, one in enumerate(launches):
            self.launch_kernel(one.program.program, one.descent, members, one.bases, one.strides, alive)
            running[step] = alive != 0
        return running

    def run_descent(self, program: Program, members: Members, bases: np.ndarray, strides: np.ndarray) -> None:
        self.launch_kernel(program, None, members, bases, strides, torch.ones_like(members.status))

    def launch_kernel(
        self,
        program: Program,
        descent: Program | None,
        members: Members,
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
        given = [records, *steps, self.on_device(bases, strides), self.arena, kernel.arena]
        sizes = [len(members), members.weights.shape[1], alive]
        launch(grid=(blocks, 1, 1), block=(THREADS, 1, 1), args=[*given, *sizes])

    def find_kernel(self, program: Program, descent: Program | None, device: torch.device) -> tuple[Kernel, Tensor]:
        if (program, descent) not in self.kernels:
            made = write_kernel(
                program, descent, self.numbers.name, THREADS, BLOCKS, SHARED * 4 // self.numbers.itemsize
            )
            self.kernels[program, descent] = made, torch.from_numpy(made.records).to(device)
        return self.kernels[program, descent]

    def on_device(self, bases: np.ndarray, strides: np.ndarray) -> Tensor:
        """Return addresses and strides (2 BUFFERS,) on the GPU, cached because they rarely change."""
        bases[ARENA] = strides[ARENA] = 0  # each block has its own arena
        both = np.concatenate([bases, strides])
        if both.tobytes() not in self.bases:
            self.bases[both.tobytes()] = torch.from_numpy(both).to(self.strayed.device)
        return self.bases[both.tobytes()]

    def check_batch(self, batch: Samples) -> None:
        """Check the range of symbols without waiting for the GPU. The next call of `grade` raises the error."""
        if not batch.inputs.is_floating_point():
            self.strayed |= ((batch.inputs < 0) | (batch.inputs >= batch.size_in)).any()

    def read(self, one: PreparedStep) -> Graded:
        if one.program.strayed is not None:
            self.strayed |= (one.memory.out[:, one.program.strayed] != 0).any()
        return read_graded(one.program, one.memory.out)


def count_blocks(members: int, arena: int, device: torch.device) -> int:
    """Return the number of blocks that the GPU runs at once, limited by the memory for their arenas of `arena` bytes each."""
    if device.type != "cuda":
        return 1
    about = torch.cuda.get_device_properties(device)
    room = int(ARENAS * about.total_memory) // arena
    return max(1, min(members, BLOCKS * about.multi_processor_count, room))
