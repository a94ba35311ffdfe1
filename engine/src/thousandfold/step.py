"""The training step or evaluation of one member, traced to a graph of ATen operations and laid out as a program.

Everything that Python draws, computes or decides during the trace becomes part of the graph, so a trace serves all steps only if none of it
differs between steps. The tensors of a batch do differ: they are inputs of the graph. Masks of dropout differ: the graph has an operation
for them. A traced step cannot decide by data, since its tensors have no values.
"""

import gc
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from thousandfold.codes import BUFFERS, GRAD, INPUT, OUT, PARAM, TARGET
from thousandfold.graph import AtenGraph, Untraceable, form_of
from thousandfold.program.atoms import Unsupported
from thousandfold.program.build import Placed, Program, finish, lower
from thousandfold.program.draft import LARGEST, ProgramDraft
from thousandfold.program.fusion import Divide
from thousandfold.recorder import AtenRecorder

Name = tuple[str, str]  # kind and name of a result, such as ("metric", "accuracy")
# (parameters by name, tensors of a batch) -> loss of one element, and results by name
StepFunction = Callable[..., tuple[Tensor, Mapping[Name, Tensor]]]


@torch.library.custom_op("thousandfold::dropout_mask", mutates_args=())
def dropout_mask(x: Tensor, site: int, threshold: int, scale: float) -> Tensor:
    """Stand for the mask of one site in the network. The engine draws it."""
    raise AssertionError("only traced")


dropout_mask.register_fake(lambda x, site, threshold, scale: torch.empty_like(x))


# A change in place becomes `copy` (`functionalize`), of which PyTorch has no derivative. It warns of the kernel that raises.
DERIVED = torch.library.Library("aten", "IMPL")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    DERIVED.impl("copy", lambda x, y, non_blocking=False: y.to(x.dtype).expand(x.shape).clone(), "Autograd")


@dataclass(frozen=True)
class Trace:
    """A traced step. `graph` maps parameters and batch tensors to a gradient or None per parameter, and to the values in `names`."""

    graph: AtenGraph
    parameters: Mapping[str, Tensor]
    gradient: bool  # whether the graph returns gradients; else only the values that `names` lists
    names: tuple[Name, ...]
    integers: tuple[bool, ...]  # which of these values are integers


def trace(
    function: StepFunction, parameters: Mapping[str, Tensor], tensors: Sequence[Tensor], gradient: bool = True
) -> Trace:
    """Trace a step of one member. Without `gradient` it is an evaluation."""
    names: list[Name] = []
    integers: list[bool] = []

    def evaluate(values: list[Tensor], *inputs: Tensor) -> tuple[Tensor, list[Tensor]]:
        loss, results = function(dict(zip(parameters, values)), *inputs)
        names[:] = list(results)
        integers[:] = [not value.is_floating_point() for value in results.values()]
        return loss.sum(), list(results.values())

    def passes(*inputs: Tensor) -> tuple[Any, ...]:
        # Changes in place become operations that return new tensors before autograd sees them.
        differentiated = torch.func.grad_and_value(torch.func.functionalize(evaluate), has_aux=True)
        gradients, (_, results) = differentiated(list(inputs[: len(parameters)]), *inputs[len(parameters) :])
        return (*gradients, *results)

    def evaluates(*inputs: Tensor) -> tuple[Any, ...]:
        return tuple(evaluate(list(inputs[: len(parameters)]), *inputs[len(parameters) :])[1])

    graph = as_graph(passes if gradient else evaluates, *parameters.values(), *tensors)
    return Trace(graph, parameters, gradient, tuple(names), tuple(integers))


def as_graph(function: Callable[..., Any], *inputs: Tensor) -> AtenGraph:
    """Return a function as a graph of few kinds of ATen operations, none of which changes a tensor."""
    try:
        with sdpa_kernel(SDPBackend.MATH):  # split PyTorch's fused attention into its operations
            return AtenRecorder().run(torch.func.functionalize(function), *map(form_of, inputs))
    except Untraceable:
        raise
    except Exception as error:
        if "mutate a captured Tensor" in str(error):  # which PyTorch calls a function's mistake
            raise Untraceable("the step changes a tensor that the module holds, such as running statistics") from error
        first = str(error).strip().splitlines()[0] if str(error) else ""
        raise Untraceable(f"{type(error).__name__}: {first}") from error


BATCH = (INPUT, TARGET, *range(BUFFERS - 4, BUFFERS))  # buffers of the tensors of a batch
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
    if len(tensors) > len(BATCH):
        raise Untraceable(f"batches of {len(tensors)} tensors, more than {len(BATCH)}")
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
        step = write_step(traced, layout, divide)
    except Unsupported as error:
        refused = Untraceable(str(error))
        refused.place = error.place
        raise refused from error
    except Exception as error:  # an unforeseen kind of graph is refused like any other
        raise Untraceable(f"no program can be written of it ({type(error).__name__}: {error})") from error
    if step.program.arena > ROOM:
        raise Untraceable(f"a step that holds {step.program.arena} numbers at once, more than {ROOM}")
    return step


def write_step(traced: Trace, layout: Layout, divide: Divide | None) -> StepProgram:
    dtype = next(iter(traced.parameters.values())).dtype
    draft = ProgramDraft(layout.length, layout.largest)
    offsets, size = [], 0
    for value in traced.parameters.values():
        offsets.append(size)
        size += value.numel()
    placed = [Placed(PARAM, offset) for offset in offsets]
    placed += [Placed(buffer, 0, lane) for buffer, lane in zip(BATCH, layout.lanes)]
    results = lower(draft, traced.graph, placed, dtype)
    outputs = results
    if traced.gradient:
        for gradient, offset, value in zip(results, offsets, traced.parameters.values()):
            draft.write(0.0 if gradient is None else gradient, (GRAD, offset), tuple(value.shape))
        outputs = results[len(offsets) :]
    for i, output in enumerate(outputs):
        draft.write(output, (OUT, i), tuple(getattr(output, "shape", ())) or ())
    strayed = None
    if draft.strayed:
        strayed = len(outputs)
        add = lambda a, b: draft.pointwise("ADD", [a, b], ())  # noqa: E731
        draft.write(reduce(add, [view.with_dims(()) for view in draft.strayed]), (OUT, strayed), ())
    return StepProgram(finish(draft, divide=divide), traced.names, traced.integers, strayed)
