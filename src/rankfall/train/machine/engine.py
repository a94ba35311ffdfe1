"""An engine of `Members` for all traceable networks: each step of a member is one run of the program for its shape.

members.engine = Machined(members, architecture, shape, training)
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

from rankfall import components
from rankfall.design import Architecture, Training, components_of
from rankfall.errors import RankfallError
from rankfall.nets.network import Shape
from rankfall.random_streams import words
from rankfall.train import recipe
from rankfall.train.device import to_device
from rankfall.train.dropout import LEVELS
from rankfall.train.machine import shares
from rankfall.train.machine.codes import ARENA, BUFFERS, CONST, GRAD, KEY, NORM, OUT, PARAM, RATES, STEP
from rankfall.train.machine.descent import CHANGING, CLIP, DECAY, LR, SLOTS, Descent
from rankfall.train.machine.evaluation import add_up, comes_apart, parts_of
from rankfall.train.machine.forms import StepForm, program_of
from rankfall.train.machine.memory import SPARE, Memory, Zeros, addresses, move, on_pages, rows
from rankfall.train.machine.program.build import Program
from rankfall.train.machine.program.fusion import Divide
from rankfall.train.machine.program_cache import digest_code
from rankfall.train.machine.runtime import Machine, room
from rankfall.train.machine.step import GIVEN, StepProgram
from rankfall.train.machine.trace import Untraceable, batch_tensors
from rankfall.train.members import DIVERGED, RUNNING, Members
from rankfall.train.objectives._base import Graded, Objective, Samples

STRAYED = "an index that the network or its objective computes lies outside of its table"
NO_CODE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class PreparedStep:
    """A step of all members that is ready to run."""

    program: StepProgram
    descent: Program | None  # None: the gradient alone
    memory: Memory
    bases: np.ndarray
    strides: np.ndarray


class Machined:
    name, device_type = "machine", "cpu"
    divide: Divide | None = None  # see `fuse`

    def __init__(
        self,
        members: Members,
        architecture: Architecture,
        shape: Shape,
        training: Training,
        code: Mapping[str, str] = NO_CODE,
    ) -> None:
        """Prepare the members. `code`: digests of all code that steps depend on; with it, programs are cached for other processes."""
        used = [*components_of(architecture), ("objective", training.objective)]
        parts = tuple(components.load(kind, one.name) for kind, one in used)
        self.design = architecture, shape, training.dtype, training.objective, parts
        self.code = digest_code(code)  # key of the cache of programs
        self.draw = recipe.make_draw(training)
        self.numbers = np.dtype(training.dtype)
        self.rate = 0.0 if members.dropout is None else int(members.dropout.threshold) / LEVELS
        self.zeros = self.own_zeros(members)
        move(members, self.zeros)
        keys = np.array([words(seed, "dropout") for seed in members.seeds], np.uint64).view(np.int64)  # (K, 2)
        self.keys = torch.from_numpy(keys).to(members.device)
        self.norms = rows(self.zeros, len(members), 1)
        self.memories: dict[StepProgram, list[Memory]] = {}
        self.machines: list[Machine] = []
        self.arenas: list[np.ndarray] = []  # one per thread
        self.evaluates = True  # until an evaluation cannot be traced
        self.pace = 1.0  # seconds of the last step of all members
        try:
            self.descent: Descent | None = Descent.of(members, self.divide)
        except Untraceable:  # PyTorch runs the optimiser for all members, after all gradients
            self.descent = None

    def own_zeros(self, members: Members) -> Zeros:
        return on_pages(self.numbers)

    def steps_at_once(self, members: int) -> int:
        """Return the number of steps for one call of `steps`. Results do not depend on it."""
        return shares.steps_between(members, workers(members), self.pace) if self.descent else 1

    def steps(self, members: Members, objective: Objective, batches: Sequence[Samples]) -> list[Graded]:
        """Train every member on the batches, in as many threads as torch would use. One thread computes a step of a network, so that
        results do not depend on the number of threads."""
        if self.descent is None:
            found = []
            for batch in batches:
                found.append(self.passes(members, batch))
                members.update(found[-1].loss)
            return found
        launches: list[PreparedStep] = []
        for batch in batches:
            launches.append(self.launch(members, batch, members.step_count + len(launches), launches))
        began = time.perf_counter()
        alive = (members.status == RUNNING).long()
        running = self.compute(members, launches, alive)
        self.pace = (time.perf_counter() - began) / len(launches)
        members.status.masked_fill_((members.status == RUNNING) & (alive == 0), DIVERGED)
        members.step_count += len(launches)
        members.last_step += running.sum(0)
        return [self.read(one) for one in launches]

    def grade(self, members: Members, objective: Objective, batch: Samples) -> Graded:
        """Evaluate a batch in parts that fit the processor's cache, or by PyTorch if the objective draws a tensor for the whole batch."""
        batch = self.draw(batch)
        if not self.evaluates or not comes_apart(batch):
            return objective(members.module, batch)
        launches: list[PreparedStep] = []
        try:
            for part in parts_of(batch):
                launches.append(self.launch(members, part, 0, launches, gradient=False, descends=False))
        except Untraceable:  # depends on code only, so it is the same on any machine
            self.evaluates = False
            return objective(members.module, batch)
        self.compute(members, launches, torch.ones_like(members.status))
        return add_up([self.read(one) for one in launches])

    def passes(self, members: Members, batch: Samples) -> Graded:
        """Return loss and metrics of each member, and write the gradients to `members.grads`."""
        one = self.launch(members, batch, members.step_count, descends=False)
        self.compute(members, [one], torch.ones_like(members.status))
        return self.read(one)

    def descend(self, members: Members) -> None:
        """Take one step of the optimiser along `members.grads`."""
        if self.descent is None:
            members.update(members.grads.new_zeros(len(members)))
            return
        memory = Memory.of(len(members), None, (), self.zeros)
        program = self.prepare_descent(members, memory, members.step_count + 1)
        self.norms.copy_(members.grads.double().norm(dim=1, keepdim=True))
        self.run_descent(program, members, *addresses(self.tensors(members, memory)))

    def run_descent(self, program: Program, members: Members, bases: np.ndarray, strides: np.ndarray) -> None:
        self.make_room(1, program.arena + SPARE)
        bases[ARENA] = self.arenas[0].ctypes.data
        self.machines[0].run(program.words, program.count, bases, strides, 0, len(members))

    def prepare_descent(self, members: Members, memory: Memory, t: int) -> Program:
        assert self.descent is not None
        program, changing = self.descent.at(t)
        memory.changing.copy_(to_device(torch.from_numpy(changing), members.device))
        for place, column in ((LR, members.lr_now), (DECAY, members.decay), (CLIP, members.clip)):
            if column is not None:
                memory.rates[:, place] = column.squeeze(1)
        return program

    def launch(
        self,
        members: Members,
        batch: Samples,
        step: int,
        before: Sequence[PreparedStep] = (),
        *,
        gradient: bool = True,
        descends: bool = True,
    ) -> PreparedStep:
        """Prepare a step. `before`: launches that will run in the same call, each of which needs its own memory."""
        if batch.drawn is None:
            batch = self.draw(batch)
        self.check_batch(batch)
        form = StepForm.of(batch)
        program = program_of(*self.design, self.rate, form, self.code, gradient, self.divide)
        free = self.memories.setdefault(program, [])
        used = sum(one.program is program for one in before)
        if used == len(free):
            free.append(Memory.of(len(members), program.program, form.shapes, self.zeros))
        memory = free[used]
        for to, x in zip(memory.given, batch_tensors(batch)):
            to.copy_(x.reshape(len(x), -1))
        memory.step.fill_(step)
        descent = self.prepare_descent(members, memory, step + 1) if descends else None
        return PreparedStep(program, descent, memory, *addresses(self.tensors(members, memory)))

    def compute(self, members: Members, launches: Sequence[PreparedStep], alive: Tensor) -> Tensor:
        """Run steps and return which members were running after each of them (steps, K). Members whose loss or gradient is not finite
        become 0 in `alive` (K,)."""
        still = alive.numpy()
        count = len(members)
        given = shares.shares(count, len(launches), workers(count))
        largest = max(
            one.arena for launch in launches for one in (launch.program.program, launch.descent) if one is not None
        )
        self.make_room(len(given), largest + SPARE)
        running = np.zeros((len(launches), count), bool)
        weights = members.weights.shape[1]

        def compute(first: int, last: int, step: int, thread: int) -> None:
            launch, machine = launches[step], self.machines[thread]
            own, one, after = launch.bases.copy(), launch.program.program, launch.descent
            own[ARENA] = self.arenas[thread].ctypes.data
            if after is None:
                machine.run(one.words, one.count, own, launch.strides, first, last)
            else:
                both = one.words, one.count, after.words, after.count
                machine.step(*both, own, launch.strides, first, last, weights, still)
            running[step, first:last] = still[first:last]

        shares.compute_shares(given, len(launches), compute)
        return torch.from_numpy(running)

    def make_room(self, threads: int, arena: int) -> None:
        while len(self.machines) < threads:
            self.machines.append(Machine(self.numbers))
        if len(self.arenas) < threads or self.arenas[0].size < arena:
            self.arenas = [room(arena, self.numbers) for _ in range(threads)]

    def tensors(self, members: Members, memory: Memory) -> dict[int, Tensor]:
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
            **dict(zip(GIVEN, memory.given)),
            **dict(zip(SLOTS, members.slots)),
        }

    def check_batch(self, batch: Samples) -> None:
        """Raise if a symbol is outside the task's range, since the embedding table has no such row."""
        x = batch.inputs
        if not x.is_floating_point() and x.numel() and not (int(x.min()) >= 0 and int(x.max()) < batch.size_in):
            raise RankfallError(
                f"inputs from {int(x.min())} to {int(x.max())}, where the task has {batch.size_in} symbols"
            )

    def read(self, one: PreparedStep) -> Graded:
        strayed = one.program.strayed
        if strayed is not None and (one.memory.out[:, strayed] != 0).any():
            raise RankfallError(STRAYED)
        return read_graded(one.program, one.memory.out)


def workers(members: int) -> int:
    return max(1, min(torch.get_num_threads(), members))


def read_graded(program: StepProgram, out: Tensor) -> Graded:
    """Return the results that the program has written to OUT (K, OUTS)."""
    found: dict[str, dict[str, Tensor]] = {"loss": {}, "asked": {}, "sums": {}, "asked_of": {}}
    for i, ((kind, name), integer) in enumerate(zip(program.names, program.integers)):
        found[kind][name] = out[:, i].nan_to_num().long() if integer else out[:, i].clone()
    return Graded(found["loss"][""], found["asked"][""], found["sums"], found["asked_of"])


def prepare() -> None:
    """Load or compile the machine, and clear the programs of an earlier job, whose code may differ."""
    program_of.cache_clear()
    one = Machine(np.float32)
    one.run(np.zeros(0, np.int64), 0, np.zeros(BUFFERS, np.int64), np.zeros(BUFFERS, np.int64), 0, 0)
