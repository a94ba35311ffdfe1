"""An engine of `Members` for whatever can be traced: each member's step is one run of the program of its shape.

members.engine = Machined(members, architecture, shape, training)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rankfall import components
from rankfall.design import Architecture, Component, Training, components_of
from rankfall.errors import RankfallError
from rankfall.nets.network import Shape, build
from rankfall.streams import words
from rankfall.train import recipe
from rankfall.train.dropout import LEVELS
from rankfall.train.fused import shares
from rankfall.train.machine.codes import ARENA, BUFFERS, CONST, GRAD, INPUT, KEY, OUT, PARAM, STEP, TARGET
from rankfall.train.machine.runtime import Machine, room
from rankfall.train.machine.step import StepProgram, step_program
from rankfall.train.members import Members
from rankfall.train.objectives._base import Graded, Objective, Samples

SPARE = 64  # numbers behind each buffer that may be read
OUTS = 64
KEPT = 8  # programs, of all shapes of the last few networks


@dataclass(frozen=True)
class StepForm:
    """All that a program depends on, but for the code: traces are of this alone."""

    inputs: tuple[int, ...]  # (B, T) or (B, T, C)
    targets: tuple[int, ...]
    formats: tuple[torch.dtype, torch.dtype]
    same: bool  # inputs and targets are one
    size_in: int
    special: int
    constant: int | None
    learned: bool

    @staticmethod
    def of(batch: Samples) -> "StepForm":
        x, y = batch.inputs, batch.targets
        about = batch.size_in, batch.special, batch.constant, batch.learned
        return StepForm(tuple(x.shape[1:]), tuple(y.shape[1:]), (x.dtype, y.dtype), x is y, *about)

    def samples(self) -> Samples:
        """Some samples of this form, of one member."""
        inputs = torch.zeros(1, *self.inputs, dtype=self.formats[0])
        targets = inputs if self.same else torch.zeros(1, *self.targets, dtype=self.formats[1])
        return Samples(inputs, targets, [0], (), self.size_in, self.special, self.constant, self.learned)


@lru_cache(KEPT)
def program_of(
    architecture: Architecture,
    shape: Shape,
    dtype: str,
    objective: Component,
    parts: tuple[Any, ...],
    dropout: float,
    form: StepForm,
) -> StepProgram:
    """`parts`: what the network and objective are made of, as loaded: of a module that is loaded anew a program is written anew."""
    module = build(architecture, shape, 1, getattr(torch, dtype))
    function = recipe.objective(Training("", objective=objective))
    return step_program(module, function, form.samples(), dropout)


@dataclass(eq=False)
class Memory:
    """What programs of one form read and write, beside the members' own rows."""

    inputs: np.ndarray  # (K, N)
    targets: np.ndarray
    out: np.ndarray  # (K, OUTS)
    constants: np.ndarray
    arenas: list[np.ndarray]  # one a thread


class Machined:
    name = "machine"

    def __init__(self, members: Members, architecture: Architecture, shape: Shape, training: Training) -> None:
        used = [*components_of(architecture), ("objective", training.objective)]
        parts = tuple(components.load(kind, one.name) for kind, one in used)
        self.design = architecture, shape, training.dtype, training.objective, parts
        self.numbers = np.dtype(training.dtype)
        self.rate = 0.0 if members.dropout is None else int(members.dropout.threshold) / LEVELS
        move(members, self.numbers)
        self.keys = np.array([words(seed, "dropout") for seed in members.seeds], np.uint64)  # (K, 2)
        self.step = np.zeros(1, np.uint64)
        self.memories: dict[StepForm, Memory] = {}
        self.machines: list[Machine] = []

    def together(self, members: int) -> int:
        return 1

    def steps(self, members: Members, objective: Objective, batches: Sequence[Samples]) -> list[Graded]:
        found = []
        for batch in batches:
            graded = self.passes(members, batch)
            members.update(graded.loss)
            found.append(graded)
        return found

    def grade(self, members: Members, objective: Objective, batch: Samples) -> Graded:
        return objective(members.module, batch)

    def passes(self, members: Members, batch: Samples) -> Graded:
        """Loss and metrics of each member; its gradient is left in `members.grads`."""
        check_symbols(batch)
        form = StepForm.of(batch)
        program = program_of(*self.design, self.rate, form)
        if form not in self.memories:
            self.memories[form] = self.memory(len(members), program, form)
        memory = self.memories[form]
        torch.from_numpy(memory.inputs).copy_(batch.inputs.flatten(1))
        torch.from_numpy(memory.targets).copy_(batch.targets.flatten(1))
        self.step[0] = members.step_count
        threads = max(1, min(torch.get_num_threads(), len(members)))
        self.make_room(threads, program, memory)
        arrays = self.arrays(members, memory)
        bases, strides = addresses(arrays)

        def compute(first: int, last: int, step: int, thread: int) -> None:
            own, one = bases.copy(), program.program
            own[ARENA] = memory.arenas[thread].ctypes.data
            self.machines[thread].run(one.words, one.count, own, strides, first, last)

        shares.compute_shares(shares.shares(len(members), 1, threads), 1, compute)
        return graded(program, torch.from_numpy(memory.out))

    def memory(self, count: int, program: StepProgram, form: StepForm) -> Memory:
        constants = room(program.program.constants.size + SPARE, self.numbers)
        constants[: program.program.constants.size] = program.program.constants
        inputs, targets = (self.rows(count, int(np.prod(shape))) for shape in (form.inputs, form.targets))
        return Memory(inputs, targets, self.rows(count, OUTS), constants, [])

    def rows(self, count: int, each: int) -> np.ndarray:
        return numbers(count * each, self.numbers).reshape(count, each)

    def make_room(self, threads: int, program: StepProgram, memory: Memory) -> None:
        while len(self.machines) < threads:
            self.machines.append(Machine(self.numbers))
        while len(memory.arenas) < threads:
            memory.arenas.append(room(program.program.arena + SPARE, self.numbers))

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

    def moved(rows: Tensor) -> Tensor:
        return torch.from_numpy(numbers(rows.numel(), dtype)).view(rows.shape).copy_(rows)

    members.weights, members.grads = moved(members.weights), moved(members.grads)
    members.slots = tuple(moved(slot) for slot in members.slots)
    start = 0
    for value in members.parameters:
        size = value[0].numel()
        value.data = members.weights[:, start : start + size].view(value.shape)
        start += size


def check_symbols(batch: Samples) -> None:
    """Raise where a symbol is none: a table has no such row."""
    x = batch.inputs
    if not x.is_floating_point() and x.numel() and not (int(x.min()) >= 0 and int(x.max()) < batch.size_in):
        raise RankfallError(f"inputs from {int(x.min())} to {int(x.max())}, where the task has {batch.size_in} symbols")


def graded(program: StepProgram, out: Tensor) -> Graded:
    """From what the program has left in OUT (K, OUTS)."""
    if program.strayed is not None and (out[:, program.strayed] != 0).any():
        raise RankfallError("an index that the network or its objective computes lies outside of its table")
    found: dict[str, dict[str, Tensor]] = {"loss": {}, "asked": {}, "sums": {}, "asked_of": {}}
    for i, ((kind, name), integer) in enumerate(zip(program.names, program.integers)):
        found[kind][name] = out[:, i].nan_to_num().long() if integer else out[:, i].clone()
    return Graded(found["loss"][""], found["asked"][""], found["sums"], found["asked_of"])


def prepare() -> None:
    """Has the machine compiled, once for a processor and a version of its code, and forgets the programs of an earlier job, whose code
    may have been another."""
    program_of.cache_clear()
    one = Machine(np.float32)
    one.run(np.zeros(0, np.int64), 0, np.zeros(BUFFERS, np.int64), np.zeros(BUFFERS, np.int64), 0, 0)
