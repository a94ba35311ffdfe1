"""The training step or evaluation of one member, traced to a graph of ATen operations and laid out as a program.

Everything that Python draws, computes or decides during the trace becomes part of the graph, so a trace serves all steps only if none of it
differs between steps. The tensors of a batch do differ: they are inputs of the graph. Masks of dropout differ: the graph has an operation
for them. A traced step cannot decide by data, since its tensors have no values.
"""

import gc
import io
import json
import math
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from thousandfold.codes import BUFFERS, GRAD, INPUT, OUT, PARAM, TARGET
from thousandfold.disk import keep, path_in_cache, read_kept
from thousandfold.graph import AtenGraph, Untraceable, form_of
from thousandfold.program.atoms import Unsupported, Value, contiguous
from thousandfold.program.build import Program, finish, lower
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


def trace(
    function: StepFunction, parameters: Mapping[str, Tensor], tensors: Sequence[Tensor], gradient: bool
) -> tuple[AtenGraph, tuple[Name, ...], tuple[bool, ...]]:
    """Trace a step of one member. Without `gradient` it is an evaluation. The graph maps parameters and batch to a gradient or None per
    parameter, if any, and to values, whose names are returned, and whether they are integers."""
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
    return graph, tuple(names), tuple(integers)


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
        graph, names, integers = trace(function, parameters, tensors, gradient)
        if len(names) > OUTS:
            raise Untraceable(f"an objective with {len(names)} numbers, more than {OUTS}")
        try:
            program, strayed = write_step(graph, list(parameters.values()), layout, gradient, divide)
        except Unsupported as error:
            refused = Untraceable(str(error))
            refused.place = error.place
            raise refused from error
        except Exception as error:  # an unforeseen kind of graph is refused like any other
            raise Untraceable(f"no program can be written of it ({type(error).__name__}: {error})") from error
    if program.arena > ROOM:
        raise Untraceable(f"a step that holds {program.arena} numbers at once, more than {ROOM}")
    return StepProgram(program, names, integers, strayed)


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


def write_step(
    graph: AtenGraph, parameters: Sequence[Tensor], layout: Layout, gradient: bool, divide: Divide | None
) -> tuple[Program, int | None]:
    """Return the program of a traced step, and the position in OUT of the count of indices outside their tables, if it has any."""
    draft = ProgramDraft(layout.length, layout.largest)
    offsets = [0, *accumulate(value.numel() for value in parameters)][:-1]
    places: list[tuple[int, int, int | None]] = [(PARAM, offset, None) for offset in offsets]
    places += [(buffer, 0, lane) for buffer, lane in zip(BATCH, layout.lanes)]
    inputs = [
        contiguous(Value(math.prod(form.shape), (buffer, offset)), form.shape, lane)
        for form, (buffer, offset, lane) in zip(graph.forms, places)
    ]
    outputs = lower(draft, graph, inputs, parameters[0].dtype)
    if gradient:
        for result, offset, value in zip(outputs, offsets, parameters):
            draft.write(0.0 if result is None else result, (GRAD, offset), tuple(value.shape))
        outputs = outputs[len(offsets) :]
    for i, output in enumerate(outputs):
        draft.write(output, (OUT, i), tuple(getattr(output, "shape", ())))
    strayed = None
    if draft.strayed:
        strayed = len(outputs)
        add = lambda a, b: draft.pointwise("ADD", [a, b], ())  # noqa: E731
        draft.write(reduce(add, [view.with_dims(()) for view in draft.strayed]), (OUT, strayed), ())
    return finish(draft, divide=divide), strayed


# A trace takes a second or more, and reading its program is much faster. So the user's cache folder keeps programs for other processes. The
# caller names a program by a digest of all that it is made of: code, the version of torch, the network, and the form of a batch.


def load_program(name: str) -> StepProgram | None:
    """Return the program with this name, or None if it is not in the cache or damaged."""
    content = read_kept(path_in_cache("programs", f"{name}.npz"))
    if content is None:
        return None
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            header = json.loads(str(file["about"]))
            program = Program(file["words"], header["count"], header["arena"], file["constants"])
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    names = tuple((kind, metric) for kind, metric in header["names"])
    return StepProgram(program, names, tuple(header["integers"]), header["strayed"])


def keep_program(name: str, step: StepProgram) -> None:
    program, content = step.program, io.BytesIO()
    header = {"count": program.count, "arena": program.arena, "names": step.names, "integers": step.integers}
    text = json.dumps(header | {"strayed": step.strayed})
    np.savez_compressed(content, about=np.array(text), words=program.words, constants=program.constants)
    keep(path_in_cache("programs", f"{name}.npz"), content.getvalue())
