"""From a traced graph to a program."""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx

from rankfall.train.machine.codes import GRAD, OUT
from rankfall.train.machine.program import arithmetic, masks, matmul, parts, sums, tables, views  # noqa: F401  (their lowerings)
from rankfall.train.machine.program.arena import allocate
from rankfall.train.machine.program.atoms import Full, Unsupported, Value, contiguous
from rankfall.train.machine.program.calls import LOWERINGS, AtenCall
from rankfall.train.machine.program.draft import ProgramDraft, ProgramNode, is_integer
from rankfall.train.machine.program.emit import emit
from rankfall.train.machine.program.fusion import fuse


@dataclass(frozen=True, eq=False)
class Program:
    words: np.ndarray  # int64
    count: int  # instructions
    arena: int  # numbers
    constants: np.ndarray  # float64


@dataclass(frozen=True)
class Placed:
    """A tensor that the program is given: where it lies, and the dimension that runs over samples, if any."""

    buffer: int
    offset: int
    lane_dim: int | None = None


def finish(
    draft: ProgramDraft,
    results: Iterable[int] = (GRAD, OUT),
    check: Callable[[Sequence[ProgramNode]], None] = lambda nodes: None,
) -> Program:
    """`check`: is given the nodes in the order in which they run."""
    groups = fuse(draft.nodes, results)
    size = allocate(draft.nodes, groups)
    check([draft.nodes[i] for group in groups for i in group])
    constants = np.concatenate(draft.constants) if draft.constants else np.zeros(0)
    return Program(emit(draft.nodes, groups), len(groups), size, constants)


def lower(draft: ProgramDraft, graph: fx.GraphModule, given: Sequence[Placed], dtype: torch.dtype) -> list[Any]:
    """Has the nodes of a graph written; what it returns, as views, full tensors, or None."""
    places = iter(given)
    known: dict[fx.Node, Any] = {}  # what no data enter
    found: dict[fx.Node, Any] = {}
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            one, shape = next(places), tuple(node.meta["val"].shape)
            value = Value(node.meta["val"].numel(), (one.buffer, one.offset))
            found[node] = contiguous(value, shape, one.lane_dim)
        elif node.op == "get_attr":
            known[node] = getattr(graph, node.target)
        elif node.op == "call_function":
            check_deterministic(node)
            if all(source in known for source in node.all_input_nodes):
                known[node] = compute_node(node, known)
            else:
                found[node] = lower_node(draft, node, found, known, dtype)
        elif node.op == "output":
            return [result(draft, one, found, known) for one in node.args[0]]
    raise AssertionError("a graph without output")


def result(draft: ProgramDraft, one: Any, found: dict[fx.Node, Any], known: Mapping[fx.Node, Any]) -> Any:
    if not isinstance(one, fx.Node):
        return one
    if one not in found:
        found[one] = draft.constant(known[one])
    return found[one]


def check_deterministic(node: fx.Node) -> None:
    tags = getattr(node.target, "tags", ())
    if torch.Tag.nondeterministic_seeded in tags:
        raise Unsupported(f"random numbers of torch ({node.target}) are drawn within the step")


def compute_node(node: fx.Node, known: Mapping[fx.Node, Any]) -> Any:
    """The value of a node that no data enter."""
    get = lambda x: known[x] if isinstance(x, fx.Node) else x  # noqa: E731
    args: Any = fx.node.map_aggregate(node.args, get)
    kwargs: Any = fx.node.map_aggregate(node.kwargs, get)
    with torch.no_grad():
        return node.target(*args, **kwargs)  # type: ignore[operator]


def lower_node(
    draft: ProgramDraft, node: fx.Node, found: dict[fx.Node, Any], known: Mapping[fx.Node, Any], dtype: torch.dtype
) -> Any:
    get = lambda x: result(draft, x, found, known)  # noqa: E731
    args = fx.node.map_aggregate(node.args, get)
    if node.target is operator.getitem:
        return args[0][args[1]]  # type: ignore[index]
    value = node.meta["val"]
    check_formats(node, value, dtype)
    if isinstance(value, Tensor) and not value.numel():
        return Full(0.0, tuple(value.shape))
    name = node.target._schema.name.split("::")[1]  # type: ignore[union-attr]
    if name not in LOWERINGS:
        raise Unsupported(f"the operation {node.target}")
    dtypes = tuple(
        source.meta["val"].dtype for source in node.all_input_nodes if isinstance(source.meta["val"], Tensor)
    )
    kwargs = fx.node.map_aggregate(node.kwargs, get)
    return LOWERINGS[name](draft, AtenCall(name, node.target, args, kwargs, value, dtypes))  # type: ignore[arg-type]


def check_formats(node: fx.Node, value: Any, dtype: torch.dtype) -> None:
    """Raise where the graph computes in another number format than the program does."""
    for one in value if isinstance(value, (tuple, list)) else [value]:
        if isinstance(one, Tensor) and one.dtype not in (dtype, torch.bool) and not is_integer(one.dtype):
            raise Unsupported(f"{node.target} in {one.dtype}, where the network has {dtype}")
