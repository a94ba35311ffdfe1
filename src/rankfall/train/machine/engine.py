"""An engine of `Members` for whatever can be traced: each member's step is one run of the program of its shape.

members.engine = Machined(members, lambda: build(architecture, shape, 1, dtype))
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankfall.errors import RankfallError
from rankfall.streams import words
from rankfall.train.fused import shares
from rankfall.train.machine.codes import ARENA, BUFFERS, CONST, GRAD, INPUT, KEY, OUT, PARAM, STEP, TARGET
from rankfall.train.machine.runtime import Machine, room
from rankfall.train.machine.step import StepProgram, step_program
from rankfall.train.members import Members
from rankfall.train.objectives._base import Graded, Objective, Samples

SPARE = 64  # numbers behind each buffer that may be read
ROOM_OUT = 64
Ident = tuple[Any, ...]


@dataclass(eq=False)
class Memory:
    """What programs of one shape read and write, beside the members' own rows."""

    inputs: np.ndarray  # (K, N)
    targets: np.ndarray
    out: np.ndarray  # (K, ROOM_OUT)
    constants: np.ndarray
    arenas: list[np.ndarray]  # one a thread


class Machined:
    name = "machine"

    def __init__(self, members: Members, alone: Callable[[], nn.Module]) -> None:
        """`alone` makes the module of one member, whose values do not matter."""
        self.alone = alone
        self.dtype = members.weights.dtype
        self.numbers = np.dtype(str(self.dtype).removeprefix("torch."))
        move(members)
        self.keys = np.array([words(seed, "dropout") for seed in members.seeds], np.uint64)  # (K, 2)
        self.step = np.zeros(1, np.uint64)
        self.programs: dict[Ident, tuple[StepProgram, Memory]] = {}
        self.machines: list[Machine] = []

    def together(self, members: int) -> int:
        return 1

    def steps(self, members: Members, objective: Objective, batches: Sequence[Samples]) -> list[Graded]:
        found = []
        for batch in batches:
            graded = self.passes(members, objective, batch)
            members.update(graded.loss)
            found.append(graded)
        return found

    def grade(self, members: Members, objective: Objective, batch: Samples) -> Graded:
        return objective(members.module, batch)

    def passes(self, members: Members, objective: Objective, batch: Samples) -> Graded:
        """Loss and metrics of each member; its gradient is left in `members.grads`."""
        check_symbols(batch)
        program, memory = self.program(members, objective, batch)
        torch.from_numpy(memory.inputs).copy_(batch.inputs.flatten(1))
        torch.from_numpy(memory.targets).copy_(batch.targets.flatten(1))
        self.step[0] = members.step_count
        count = max(1, min(torch.get_num_threads(), len(members)))
        self.make_room(count, program, memory)
        strides = self.strides(members, memory)
        bases = self.bases(members, memory)

        def compute(first: int, last: int, step: int, thread: int) -> None:
            own = bases.copy()
            own[ARENA] = memory.arenas[thread].ctypes.data
            one = program.program
            self.machines[thread].run(one.words, one.count, own, strides, first, last)

        shares.compute_shares(shares.shares(len(members), 1, count), 1, compute)
        return graded(program, torch.from_numpy(memory.out))

    def program(self, members: Members, objective: Objective, batch: Samples) -> tuple[StepProgram, Memory]:
        x, y = batch.inputs, batch.targets
        about = batch.size_in, batch.special, batch.constant, batch.learned
        ident = (id(objective), x.shape[1:], x.dtype, y.shape[1:], y.dtype, *about)
        if ident not in self.programs:
            rate = 0.0 if members.dropout is None else int(members.dropout.threshold) / 65536
            program = step_program(self.alone(), objective, first_of(batch), rate)
            self.programs[ident] = program, self.memory(len(members), program, batch)
        return self.programs[ident]

    def memory(self, count: int, program: StepProgram, batch: Samples) -> Memory:
        constants = self.room(program.program.constants.size)
        constants[: program.program.constants.size] = program.program.constants
        rows = [self.rows(count, x[0].numel()) for x in (batch.inputs, batch.targets)]
        return Memory(*rows, self.rows(count, ROOM_OUT), constants, [])

    def make_room(self, threads: int, program: StepProgram, memory: Memory) -> None:
        while len(self.machines) < threads:
            self.machines.append(Machine(self.numbers))
        while len(memory.arenas) < threads:
            memory.arenas.append(self.room(program.program.arena))

    def room(self, count: int) -> np.ndarray:
        found: np.ndarray = room(count + SPARE, self.numbers)
        return found

    def rows(self, count: int, each: int) -> np.ndarray:
        return self.room(count * each)[: count * each].reshape(count, each)

    def bases(self, members: Members, memory: Memory) -> np.ndarray:
        """The address of each buffer of the first member."""
        found = np.zeros(BUFFERS, np.int64)
        for buffer, array in self.arrays(members, memory).items():
            found[buffer] = array.ctypes.data
        return found

    def strides(self, members: Members, memory: Memory) -> np.ndarray:
        """Bytes from a member's buffer to the next member's."""
        found = np.zeros(BUFFERS, np.int64)
        for buffer, array in self.arrays(members, memory).items():
            found[buffer] = array.strides[0] if array.ndim > 1 else 0
        return found

    def arrays(self, members: Members, memory: Memory) -> dict[int, np.ndarray]:
        return {
            CONST: memory.constants,
            PARAM: members.weights.detach().numpy(),
            GRAD: members.grads.numpy(),
            INPUT: memory.inputs,
            TARGET: memory.targets,
            OUT: memory.out,
            KEY: self.keys,
            STEP: self.step,
        }


def move(members: Members) -> None:
    """Has weights, gradients and what the optimiser remembers lie where numbers behind them may be read."""

    def moved(rows: Tensor) -> Tensor:
        numbers = np.dtype(str(rows.dtype).removeprefix("torch."))
        held = torch.from_numpy(room(rows.numel() + SPARE, numbers))[: rows.numel()].view(rows.shape)
        return held.copy_(rows)

    members.weights, members.grads = moved(members.weights), moved(members.grads)
    members.slots = tuple(moved(slot) for slot in members.slots)
    start = 0
    for value in members.parameters:
        size = value[0].numel()
        value.data = members.weights[:, start : start + size].view(value.shape)
        start += size


def first_of(batch: Samples) -> Samples:
    """Samples of the first member alone."""
    from dataclasses import replace

    inputs = batch.inputs[:1].contiguous()
    targets = inputs if batch.targets is batch.inputs else batch.targets[:1].contiguous()
    return replace(batch, inputs=inputs, targets=targets)


def check_symbols(batch: Samples) -> None:
    """Raise where a symbol is none: a table has no such row."""
    x = batch.inputs
    if not x.is_floating_point() and x.numel() and not (int(x.min()) >= 0 and int(x.max()) < batch.size_in):
        raise RankfallError(f"inputs from {int(x.min())} to {int(x.max())}, where the task has {batch.size_in} symbols")


def graded(program: StepProgram, out: Tensor) -> Graded:
    """From what the program has left in OUT (K, ROOM_OUT)."""
    if program.strayed is not None and (out[:, program.strayed] != 0).any():
        raise RankfallError("an index that the network or its objective computes lies outside of its table")
    found: dict[str, dict[str, Tensor]] = {"loss": {}, "asked": {}, "sums": {}, "asked_of": {}}
    for i, ((kind, name), integer) in enumerate(zip(program.names, program.integers)):
        found[kind][name] = out[:, i].nan_to_num().long() if integer else out[:, i].clone()
    return Graded(found["loss"][""], found["asked"][""], found["sums"], found["asked_of"])
