"""From a traced graph to a program."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from thousandfold.codes import GRAD, OUT
from thousandfold.graph import AtenGraph, AtenOperation, Form, Ref, replace_in
from thousandfold.program import arithmetic, matmul, parts, sums, tables, views  # noqa: F401  (their lowerings)
from thousandfold.program.atoms import Full, Unsupported, View
from thousandfold.program.draft import LOWERINGS, AtenCall, ProgramDraft, ProgramNode, is_integer
from thousandfold.program.emit import allocate, emit
from thousandfold.program.fusion import Divide, fuse
from thousandfold.program.integers import IntegerBounds


@dataclass(frozen=True, eq=False)
class Program:
    words: np.ndarray  # int64
    count: int  # instructions
    arena: int  # numbers
    constants: np.ndarray  # float64


def finish(
    draft: ProgramDraft,
    results: Iterable[int] = (GRAD, OUT),
    check: Callable[[Sequence[ProgramNode]], None] = lambda nodes: None,
    divide: Divide | None = None,
) -> Program:
    """Turn a draft into a program. `check` is called with the nodes in the order in which they run. `divide`: see `fuse`."""
    groups = fuse(draft.nodes, results, divide)
    size = allocate(draft.nodes, groups)
    check([draft.nodes[i] for group in groups for i in group])
    constants = np.concatenate([*draft.constants.values()]) if draft.constants else np.zeros(0)
    return Program(emit(draft.nodes, groups), len(groups), size, constants)


def lower(draft: ProgramDraft, graph: AtenGraph, inputs: Sequence[View | None], dtype: torch.dtype) -> list[Any]:
    """Lower a graph of these inputs to nodes and return its results as views, full tensors or None."""
    tensors: dict[int, Any] = dict(enumerate(inputs))  # by tensor number

    def get(ref: Ref) -> Any:
        if ref.number not in tensors:
            tensors[ref.number] = draft.constant(graph.known[ref.number])
        return tensors[ref.number]

    bounds = IntegerBounds(graph, draft.largest)
    for operation in graph.needed():
        if operation.outputs[0] not in graph.known:
            bounds.add(operation)
            try:
                result = lower_operation(draft, graph, operation, get, dtype)
            except Unsupported as error:
                error.place = graph.places.get(operation.outputs[0], "")
                raise
            several = result if isinstance(operation.result, list | tuple) else [result]
            tensors.update(zip(operation.outputs, several, strict=True))
    return parts.solid(draft, [get(result) if isinstance(result, Ref) else result for result in graph.results])


def lower_operation(
    draft: ProgramDraft, graph: AtenGraph, operation: AtenOperation, get: Callable[[Ref], Any], dtype: torch.dtype
) -> Any:
    args, kwargs = replace_in((operation.args, operation.kwargs), Ref, get)
    name, value = operation.target._schema.name.split("::")[1], graph.form_in(operation.result)
    if name == "add" and not kwargs and (total := parts.add_slices(draft, *args[:2])) is not None:
        return total
    args, kwargs = parts.solid(draft, (args, kwargs))
    check_formats(operation, value, dtype)
    if isinstance(value, Form) and not math.prod(value.shape):
        return Full(0.0, value.shape)
    if name not in LOWERINGS:
        raise Unsupported(f"the operation {operation.target}")
    dtypes = tuple(graph.forms[number].dtype for number in dict.fromkeys(operation.inputs))
    return LOWERINGS[name](draft, AtenCall(name, operation.target, args, kwargs, value, dtypes))


def check_formats(operation: AtenOperation, value: Any, dtype: torch.dtype) -> None:
    """Raise if an operation computes in another number format than the program."""
    for form in value if isinstance(value, (tuple, list)) else [value]:
        if isinstance(form, Form) and form.dtype not in (dtype, torch.bool) and not is_integer(form.dtype):
            raise Unsupported(f"{operation.target} in {form.dtype}, where the network has {dtype}")
