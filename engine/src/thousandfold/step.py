"""The program of one member's training step or evaluation: traced, laid out and fused."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from torch import Tensor

from thousandfold.codes import BUFFERS, GRAD, INPUT, OUT, PARAM, TARGET
from thousandfold.program.atoms import Unsupported
from thousandfold.program.build import Placed, Program, finish, lower
from thousandfold.program.draft import LARGEST, ProgramDraft
from thousandfold.program.fusion import Divide
from thousandfold.trace import Name, StepFunction, Trace, Untraceable, trace

GIVEN = (INPUT, TARGET, *range(BUFFERS - 4, BUFFERS))  # buffers of the tensors of a batch
ROOM = 2**26  # largest number of elements of an arena; each thread has one
OUTS = 60  # largest number of results besides gradients, a few fewer than `memory.py` has room for


@dataclass(frozen=True, eq=False)
class StepProgram:
    program: Program
    names: tuple[Name, ...]  # names of the numbers in OUT
    integers: tuple[bool, ...]
    strayed: int | None  # position in OUT of the count of indices outside their tables


@dataclass(frozen=True)
class Layout:
    """The properties of a batch that decide how a program lays out its tensors. Results depend on them only in rounding."""

    lanes: tuple[int | None, ...]  # dimension of the samples of each tensor, if any
    length: int = 0  # tokens of a sample, next to the samples in products
    largest: int = 1  # bound of the absolute values of integers


def step_program(
    function: StepFunction,
    parameters: Mapping[str, Tensor],
    tensors: Sequence[Tensor],
    layout: Layout,
    gradient: bool = True,
    divide: Divide | None = None,
) -> StepProgram:
    """Return the program of a step of one member. Raise `Untraceable` if it has none. `divide`: see `fuse`."""
    size = max(x.numel() for x in tensors)
    if size > LARGEST:
        raise Untraceable(f"batches of {size} numbers, more than {LARGEST}")
    if len(tensors) > len(GIVEN):
        raise Untraceable(f"batches of {len(tensors)} tensors, more than {len(GIVEN)}")
    with collect_nothing():
        return write_program(trace(function, parameters, tensors, gradient), layout, divide)


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


def write_program(traced: Trace, layout: Layout, divide: Divide | None = None) -> StepProgram:
    if len(traced.names) > OUTS:
        raise Untraceable(f"an objective with {len(traced.names)} numbers, more than {OUTS}")
    try:
        found = write_step(traced, layout, divide)
    except Unsupported as error:
        refused = Untraceable(str(error))
        refused.place = error.place
        raise refused from error
    except Exception as error:  # an unforeseen kind of graph is refused like any other
        raise Untraceable(f"no program can be written of it ({type(error).__name__}: {error})") from error
    if found.program.arena > ROOM:
        raise Untraceable(f"a step that holds {found.program.arena} numbers at once, more than {ROOM}")
    return found


def write_step(traced: Trace, layout: Layout, divide: Divide | None) -> StepProgram:
    dtype = next(iter(traced.parameters.values())).dtype
    draft = ProgramDraft(layout.length, layout.largest)
    offsets, size = [], 0
    for value in traced.parameters.values():
        offsets.append(size)
        size += value.numel()
    given = [Placed(PARAM, offset) for offset in offsets]
    given += [Placed(buffer, 0, lane) for buffer, lane in zip(GIVEN, layout.lanes)]
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
