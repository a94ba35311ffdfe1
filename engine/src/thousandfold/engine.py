"""The engine: each step of a member is one run of the program for its shape, on a processor."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from thousandfold import shares
from thousandfold.codes import ARENA, CONST, GRAD, KEY, NORM, OUT, PARAM, RATES, STEP
from thousandfold.descent import CHANGING, CLIP, DECAY, LR, SLOTS, Descent
from thousandfold.errors import EngineError
from thousandfold.graph import Untraceable
from thousandfold.memory import SPARE, Memory, Zeros, addresses, member_rows, move, on_pages, room, to_device
from thousandfold.optimizers import DIVERGED, RUNNING, Rows
from thousandfold.program.build import Program
from thousandfold.program.fusion import Divide
from thousandfold.step import BATCH, Name, StepProgram

STRAYED = "an index that the network or its objective computes lies outside of its table"
Results = dict[Name, Tensor]  # each (K,)


@dataclass(frozen=True, eq=False)
class Work:
    """A step of all members: its program, and the tensors (K, ...) of its batch."""

    program: StepProgram
    tensors: Sequence[Tensor]


@dataclass(frozen=True, eq=False)
class PreparedStep:
    """A step of all members that is ready to run."""

    program: StepProgram
    descent: Program | None  # None: the gradient alone
    memory: Memory
    bases: np.ndarray
    strides: np.ndarray


class Engine:
    device_type = "cpu"
    divide: Divide | None = None  # see `fuse`

    def __init__(self, members: Rows, keys: Tensor) -> None:
        """Prepare the members, whose rows move to other memory. `keys` (K, 2) are the 64-bit words that name their streams of dropout."""
        self.numbers = np.dtype(str(members.weights.dtype).removeprefix("torch."))
        self.zeros = self.own_zeros(members)
        move(members, self.zeros)
        self.keys = keys.to(members.device)
        self.norms = member_rows(self.zeros, len(members), 1)
        self.memories: dict[StepProgram, list[Memory]] = {}
        self.machines: list[Any] = []  # `Machine` of `runtime.py`, one per thread
        self.arenas: list[np.ndarray] = []  # one per thread
        self.pace = 1.0  # seconds of the last step of all members
        try:
            self.descent: Descent | None = Descent.for_members(members, self.divide)
        except Untraceable:  # PyTorch runs the optimiser for all members, after all gradients
            self.descent = None

    def own_zeros(self, members: Rows) -> Zeros:
        check_numba()
        return on_pages(self.numbers)

    def steps_at_once(self, members: int) -> int:
        """Return the number of steps for one call of `steps`. Results do not depend on it."""
        return shares.steps_between(members, workers(members), self.pace) if self.descent else 1

    def steps(self, members: Rows, works: Sequence[Work]) -> list[Results]:
        """Train every member, in as many threads as torch would use. One thread computes a step of a network, so that results do not
        depend on the number of threads."""
        launches: list[PreparedStep] = []
        try:
            for work in works:
                launches.append(self.launch(members, work, members.step_count + len(launches), launches))
        except Untraceable:  # the optimiser at one of these steps, which PyTorch then takes
            if len(works) > 1:
                return [results for work in works for results in self.steps(members, [work])]
            results = self.passes(members, works[0])
            members.update(results["loss", ""])
            return [results]
        began = time.perf_counter()
        alive = (members.status == RUNNING).long()
        running = self.compute(members, launches, alive)
        self.pace = (time.perf_counter() - began) / len(launches)
        members.status.masked_fill_((members.status == RUNNING) & (alive == 0), DIVERGED)
        members.step_count += len(launches)
        members.last_step += running.sum(0)
        return [self.read(launch) for launch in launches]

    def evaluate(self, members: Rows, works: Sequence[Work]) -> list[Results]:
        """Return the results of each member, and write the gradients of programs that have them to `members.grads`."""
        launches: list[PreparedStep] = []
        for work in works:
            launches.append(self.launch(members, work, members.step_count, launches, descends=False))
        self.compute(members, launches, torch.ones_like(members.status))
        return [self.read(launch) for launch in launches]

    def passes(self, members: Rows, work: Work) -> Results:
        """Return the results of each member, and write the gradients to `members.grads`."""
        return self.evaluate(members, [work])[0]

    def descend(self, members: Rows) -> None:
        """Take one step of the optimiser along `members.grads`."""
        if self.descent is None:
            members.update(members.grads.new_zeros(len(members)))
            return
        memory = Memory.allocate(len(members), None, (), self.zeros)
        program = self.prepare_descent(members, memory, members.step_count + 1)
        self.norms.copy_(members.grads.double().norm(dim=1, keepdim=True))
        self.run_descent(program, members, *addresses(self.tensors(members, memory)))

    def run_descent(self, program: Program, members: Rows, bases: np.ndarray, strides: np.ndarray) -> None:
        self.make_room(1, program.arena + SPARE)
        bases[ARENA] = self.arenas[0].ctypes.data
        self.machines[0].run(program.words, program.count, bases, strides, 0, len(members))

    def prepare_descent(self, members: Rows, memory: Memory, t: int) -> Program:
        if self.descent is None:
            raise Untraceable("the optimiser")
        program, changing = self.descent.at(t)
        memory.changing.copy_(to_device(torch.from_numpy(changing), members.device))
        for place, column in ((LR, members.lr_now), (DECAY, members.decay), (CLIP, members.clip)):
            if column is not None:
                memory.rates[:, place] = column.squeeze(1)
        return program

    def launch(
        self, members: Rows, work: Work, step: int, before: Sequence[PreparedStep] = (), *, descends: bool = True
    ) -> PreparedStep:
        """Prepare a step. `before`: launches that will run in the same call, each of which needs its own memory."""
        program = work.program
        free = self.memories.setdefault(program, [])
        used = sum(launch.program is program for launch in before)
        if used == len(free):
            shapes = [tuple(x.shape[1:]) for x in work.tensors]
            free.append(Memory.allocate(len(members), program.program, shapes, self.zeros))
        memory = free[used]
        for to, x in zip(memory.batch, work.tensors):
            to.copy_(x.reshape(len(x), -1))
        memory.step.fill_(step)
        descent = self.prepare_descent(members, memory, step + 1) if descends else None
        return PreparedStep(program, descent, memory, *addresses(self.tensors(members, memory)))

    def compute(self, members: Rows, launches: Sequence[PreparedStep], alive: Tensor) -> Tensor:
        """Run steps and return which members were running after each of them (steps, K). Members whose loss or gradient is not finite
        become 0 in `alive` (K,)."""
        still = alive.numpy()
        count = len(members)
        portions = shares.shares(count, len(launches), workers(count))
        largest = max(
            program.arena
            for launch in launches
            for program in (launch.program.program, launch.descent)
            if program is not None
        )
        self.make_room(len(portions), largest + SPARE)
        running = np.zeros((len(launches), count), bool)
        weights = members.weights.shape[1]

        def compute(first: int, last: int, step: int, thread: int) -> None:
            launch, machine = launches[step], self.machines[thread]
            bases, program, descent = launch.bases.copy(), launch.program.program, launch.descent
            bases[ARENA] = self.arenas[thread].ctypes.data
            then: tuple[Any, ...] = (descent.words, descent.count, weights, still) if descent else ()
            machine.run(program.words, program.count, bases, launch.strides, first, last, *then)
            running[step, first:last] = still[first:last]

        shares.compute_shares(portions, len(launches), compute)
        return torch.from_numpy(running)

    def make_room(self, threads: int, arena: int) -> None:
        from thousandfold.runtime import Machine

        while len(self.machines) < threads:
            self.machines.append(Machine(self.numbers))
        if len(self.arenas) < threads or self.arenas[0].size < arena:
            self.arenas = [room(arena, self.numbers) for _ in range(threads)]

    def tensors(self, members: Rows, memory: Memory) -> dict[int, Tensor]:
        return {
            CONST: memory.constants,
            PARAM: members.weights,
            GRAD: members.grads,
            OUT: memory.out,
            KEY: self.keys,
            STEP: memory.step,
            RATES: memory.rates,
            NORM: self.norms,
            CHANGING: memory.changing,
            **dict(zip(BATCH, memory.batch)),
            **dict(zip(SLOTS, members.slots)),
        }

    def check_range(self, values: Tensor, below: int) -> None:
        """Raise if an integer of a batch is negative or too large, since an embedding has no such row."""
        if values.numel() and not (int(values.min()) >= 0 and int(values.max()) < below):
            raise EngineError(
                f"integers from {int(values.min())} to {int(values.max())}, where there are {below} symbols"
            )

    def read(self, step: PreparedStep) -> Results:
        strayed = step.program.strayed
        if strayed is not None and (step.memory.out[:, strayed] != 0).any():
            raise EngineError(STRAYED)
        return read_results(step.program, step.memory.out)


def workers(members: int) -> int:
    return max(1, min(torch.get_num_threads(), members))


def read_results(program: StepProgram, out: Tensor) -> Results:
    """Return the results that the program has written to OUT (K, OUTS)."""
    return {
        name: out[:, i].nan_to_num().long() if integer else out[:, i].clone()
        for i, (name, integer) in enumerate(zip(program.names, program.integers))
    }


def check_numba() -> None:
    """Raise if the kernels cannot be compiled. Only a program on a processor needs numba."""
    try:
        import numba  # noqa: F401
    except ImportError as error:
        raise Untraceable("numba is not installed: pip install 'thousandfold[fast]'") from error
