"""The program of one member's training step or evaluation: traced, laid out and fused."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from torch import Tensor, nn

from rankfall.train.machine.codes import BUFFERS, GRAD, INPUT, OUT, PARAM, TARGET
from rankfall.train.machine.program.atoms import Unsupported
from rankfall.train.machine.program.build import Placed, Program, finish, lower
from rankfall.train.machine.program.draft import LARGEST, ProgramDraft
from rankfall.train.machine.program.fusion import Divide
from rankfall.train.machine.trace import Trace, Untraceable, batch_tensors, trace
from rankfall.train.objectives._base import Objective, Samples

GIVEN = (INPUT, TARGET, *range(BUFFERS - 4, BUFFERS))  # buffers of inputs, targets and tensors that an objective draws
ROOM = 2**26  # largest number of elements of an arena; each thread has one
OUTS = 60  # largest number of results besides gradients, a few fewer than `memory.py` has room for


@dataclass(frozen=True, eq=False)
class StepProgram:
    program: Program
    names: tuple[tuple[str, str], ...]  # names of the numbers in OUT
    integers: tuple[bool, ...]
    strayed: int | None  # position in OUT of the count of indices outside their tables


def step_program(
    module: nn.Module,
    objective: Objective,
    batch: Samples,
    dropout: float,
    gradient: bool = True,
    divide: Divide | None = None,
) -> StepProgram:
    """Return the program of a module and samples of one member. Raise `Untraceable` if it has none. `divide`: see `fuse`."""
    largest = max(x.numel() for x in batch_tensors(batch))
    if largest > LARGEST:
        raise Untraceable(f"batches of {largest} numbers, more than {LARGEST}")
    if len(batch_tensors(batch)) > len(GIVEN):
        raise Untraceable(f"an objective that draws {len(batch.drawn or ())} tensors, more than {len(GIVEN) - 2}")
    with collect_nothing():
        return write_program(trace(module, objective, batch, dropout, gradient), batch, divide)


@contextmanager
def collect_nothing() -> Iterator[None]:
    """Disable garbage collection. A graph has many small objects and no garbage, and collection would take a third of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def write_program(traced: Trace, batch: Samples, divide: Divide | None = None) -> StepProgram:
    if len(traced.names) > OUTS:
        raise Untraceable(f"an objective with {len(traced.names)} numbers, more than {OUTS}")
    try:
        found = write_step(traced, batch, divide)
    except Unsupported as error:
        raise Untraceable(str(error)) from error
    except Exception as error:  # an unforeseen kind of graph is refused like any other
        raise Untraceable(f"no program can be written of it ({type(error).__name__}: {error})") from error
    if found.program.arena > ROOM:
        raise Untraceable(f"a step that holds {found.program.arena} numbers at once, more than {ROOM}")
    return found


def write_step(traced: Trace, batch: Samples, divide: Divide | None) -> StepProgram:
    dtype = next(iter(traced.parameters.values())).dtype
    length = batch.inputs.shape[2] if batch.inputs.dim() > 2 else 0
    draft = ProgramDraft(length, max(1, batch.size_in))
    offsets, size = [], 0
    for value in traced.parameters.values():
        offsets.append(size)
        size += value.numel()
    given = [Placed(PARAM, offset) for offset in offsets]
    samples = batch.inputs.shape[1]
    given += [Placed(buffer, 0, lane_of(x, samples)) for buffer, x in zip(GIVEN, batch_tensors(batch))]
    results = lower(draft, traced.graph, given, dtype)
    others = results
    if traced.gradient:
        for gradient, offset, value in zip(results, offsets, traced.parameters.values()):
            draft.write(0.0 if gradient is None else gradient, (GRAD, offset), tuple(value.shape))
        others = results[len(offsets) :]
    for i, one in enumerate(others):
        draft.write(one, (OUT, i), tuple(getattr(one, "shape", ())) or ())
    strayed = None
    if draft.strayed:
        strayed = len(others)
        add = lambda a, b: draft.pointwise("ADD", [a, b], ())  # noqa: E731
        draft.write(reduce(add, [view.with_dims(()) for view in draft.strayed]), (OUT, strayed), ())
    return StepProgram(finish(draft, divide=divide), traced.names, traced.integers, strayed)


def lane_of(x: Tensor, samples: int) -> int | None:
    return 1 if x.dim() > 1 and x.shape[1] == samples else None
