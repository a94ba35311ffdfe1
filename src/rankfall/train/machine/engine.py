"""An engine of `Members` for all traceable networks: each step of a member is one run of the program for its shape.

members.engine = Machined(members, architecture, shape, training)
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

from rankfall import components
from rankfall.design import Architecture, Training, components_of
from rankfall.errors import NoKernel, RankfallError
from rankfall.nets.network import Shape
from rankfall.random_streams import words
from rankfall.train import recipe
from rankfall.train.dropout import LEVELS
from rankfall.train.machine.traced import StepForm, batch_tensors, digest_code, program_of
from rankfall.train.members import Members
from rankfall.train.objectives._base import Graded, Objective, Samples
from thousandfold import errors
from thousandfold.engine import Engine, Results, Work
from thousandfold.graph import Untraceable

COMPARED = 500  # steps from one comparison with autograd to the next, under 1% of the time in a stack of four or more
NO_CODE: Mapping[str, str] = MappingProxyType({})


class Machined:
    """An engine of `Members` on the processor."""

    name, device_type = "machine", "cpu"
    kind: type[Engine] = Engine

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
        parts = tuple(components.load(kind, component.name) for kind, component in used)
        self.design, self.training = (architecture, shape, training.dtype, training.objective, parts), training
        self.code = digest_code(code)  # key of the cache of programs
        self.draw = recipe.make_draw(training)
        self.rate = 0.0 if members.dropout is None else int(members.dropout.threshold) / LEVELS
        self.evaluates = True  # until an evaluation cannot be traced
        keys = np.array([words(seed, "dropout") for seed in members.seeds], np.uint64).view(np.int64)  # (K, 2)
        with as_errors_of_users():
            self.engine = self.kind(members, torch.from_numpy(keys))

    def steps_at_once(self, members: int) -> int:
        return self.engine.steps_at_once(members)

    def steps(self, members: Members, objective: Objective, batches: Sequence[Samples]) -> list[Graded]:
        """Train every member on the batches. Compare one member's step with autograd's about every COMPARED steps."""
        if members.step_count and -(members.step_count + members.seeds[0]) % COMPARED < len(batches):
            self.compare(members, batches[0])
        with as_errors_of_users():
            works = [self.work(batch) for batch in batches]
            return [as_graded(result) for result in self.engine.steps(members, works)]

    def compare(self, members: Members, batch: Samples) -> None:
        """Raise if the step of a member differs from autograd's by more than rounding."""
        from rankfall.train.machine.agreement import later_difference

        step = members.step_count
        member = step // COMPARED % len(members)
        if difference := later_difference(self, members, batch, member):
            raise RankfallError(f"step {step} of seed {members.seeds[member]}: {difference}")

    def grade(self, members: Members, objective: Objective, batch: Samples) -> Graded:
        """Evaluate a batch in parts that fit the processor's cache, or by PyTorch if the objective draws a tensor for the whole batch."""
        batch = self.draw(batch)
        # It can be split if all tensors drawn for it have its axis of samples.
        splits = all(x.dim() > 1 and x.shape[1] == batch.inputs.shape[1] for x in batch.drawn or ())
        if not self.evaluates or not splits:
            return objective(members.module, batch)
        try:
            with as_errors_of_users():
                works = [self.work(part, gradient=False) for part in parts_of(batch)]
                return add_up([as_graded(result) for result in self.engine.evaluate(members, works)])
        except Untraceable:  # depends on code only, so it is the same on any machine
            self.evaluates = False
            return objective(members.module, batch)

    def passes(self, members: Members, batch: Samples) -> Graded:
        """Return loss and metrics of each member, and write the gradients to `members.grads`."""
        with as_errors_of_users():
            return as_graded(self.engine.passes(members, self.work(batch)))

    def descend(self, members: Members) -> None:
        """Take one step of the optimiser along `members.grads`."""
        self.engine.descend(members)

    def work(self, batch: Samples, gradient: bool = True) -> Work:
        """Return a batch with the program of its form."""
        if batch.drawn is None:
            batch = self.draw(batch)
        if not batch.inputs.is_floating_point():
            self.engine.check_range(batch.inputs, batch.size_in)
        form, divide = StepForm.from_batch(batch), self.kind.divide
        return Work(program_of(*self.design, self.rate, form, self.code, gradient, divide), batch_tensors(batch))


def as_graded(results: Results) -> Graded:
    """Convert the results of a program."""
    named: dict[str, dict[str, Tensor]] = {"loss": {}, "asked": {}, "sums": {}, "asked_of": {}}
    for (kind, name), value in results.items():
        named[kind][name] = value
    return Graded(named["loss"][""], named["asked"][""], named["sums"], named["asked_of"])


@contextmanager
def as_errors_of_users() -> Iterator[None]:
    """Turn errors of the engine into errors that a job reports in one line."""
    try:
        yield
    except errors.NoKernel as error:
        raise NoKernel(f"{error}, or say `compute: {{engine: plain}}`, which makes other keys") from error
    except errors.EngineError as error:
        raise RankfallError(str(error)) from error


def prepare() -> None:
    """Load or compile the engine's kernels, and clear the programs of an earlier job, whose code may differ."""
    from thousandfold import runtime  # imports numba

    program_of.cache_clear()
    with as_errors_of_users():
        runtime.prepare("float32")


EVALUATED = 32  # largest number of samples of a part; more do not fit the processor's cache


def parts_of(batch: Samples) -> list[Samples]:
    """Split a batch into parts of at most EVALUATED samples.

    The parts have equal sizes if this does not make them much smaller, since each size needs a program.
    """
    count = batch.inputs.shape[1]
    size = next((n for n in range(min(count, EVALUATED), EVALUATED // 2, -1) if count % n == 0), EVALUATED)
    inputs = batch.inputs.split(size, 1)
    targets = inputs if batch.targets is batch.inputs else batch.targets.split(size, 1)
    parts = [replace(batch, inputs=x, targets=y) for x, y in zip(inputs, targets)]
    if not batch.drawn:
        return parts
    return [replace(part, drawn=drawn) for part, drawn in zip(parts, zip(*(x.split(size, 1) for x in batch.drawn)))]


def add_up(parts: Sequence[Graded]) -> Graded:
    """Return the result on the targets of all parts."""
    if len(parts) == 1:
        return parts[0]
    asked = sum_of(part.asked for part in parts)
    loss = sum_of((part.loss.double() * part.asked).masked_fill(part.asked == 0, 0.0) for part in parts) / asked
    sums, asked_of = (
        {name: sum_of(getattr(part, kind)[name] for part in parts) for name in getattr(parts[0], kind)}
        for kind in ("sums", "asked_of")
    )
    return Graded(loss.to(parts[0].loss.dtype), asked, sums, asked_of)


def sum_of(values: Iterable[Tensor]) -> Tensor:
    return torch.stack(list(values)).sum(0)
