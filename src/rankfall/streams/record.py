"""Recorders of one forward pass as a graph: the tensors, the operations that computed them, and the modules around these.

A `TorchFunctionMode` records a small batch. All tensors are kept until the graph is read, so that no id() is used twice.
`sums.py` finds the residual additions in the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from rankfall.streams.frames import Call, Frames, Operation

ADDS = frozenset(
    {torch.add, Tensor.add, Tensor.__add__, Tensor.__radd__, Tensor.add_, Tensor.__iadd__}  # type: ignore[attr-defined]
)
IN_PLACE = frozenset({"add_", "__iadd__"})
# Products with a weight: most of a branch's arithmetic, skipped when the branch is left out.
PRODUCTS = frozenset({torch.nn.functional.linear, torch.addmm})
# Operations that compute attention with its softmax inside.
FUSED_ATTENTION = frozenset(
    {torch.nn.functional.scaled_dot_product_attention, torch.nn.functional.multi_head_attention_forward}
)
SINKS = 4
SOFTMAX = frozenset({torch.softmax, torch.nn.functional.softmax, Tensor.softmax, torch._C._nn.__dict__.get("softmax")})
# Operations that pass a state on, up to layout and dtype.
SAME_STATE = frozenset(
    {
        "view", "reshape", "transpose", "permute", "contiguous", "clone", "detach", "to", "type", "type_as",
        "float", "double", "dropout", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as", "expand", "alias",
        "movedim", "swapaxes", "half", "bfloat16", "requires_grad_", "_to_copy", "t", "rearrange", "unbind_",
        "identity",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Node:
    """A tensor at one moment of the pass: its operation, its parents and the calls in progress."""

    index: int
    op: str
    parents: tuple[int, ...]
    shape: tuple[int, ...]
    stack: tuple[Call, ...]
    operation: Operation | None = None
    operands: tuple[int, int] | None = None  # the two summands of an addition of tensors, left and right
    attends: bool = False
    leaf: bool = False


class Recorder(TorchFunctionMode):
    """Mode that records every torch function called on tensors while it is active."""

    def __init__(self, frames: Frames) -> None:
        super().__init__()
        self.nodes: list[Node] = []
        self.tensors: list[Any] = []  # one per node, all kept
        self.outputs: dict[Call, list[tuple[tuple[Any, ...], int]]] = {}
        self._frames = frames
        self._known: dict[int, int] = {}

    def node_of(self, tensor: Tensor) -> int:
        """Return the newest node of a tensor. A tensor from no recorded operation (weight, buffer, input) becomes a leaf."""
        index = self._known.get(id(tensor))
        return self._add(tensor, "leaf", (), leaf=True) if index is None else index

    def left(self, call: Call, inputs: Any, output: Any) -> None:
        """Record the output of a module call; `Frames` calls this."""
        self.outputs[call] = [(path, self.node_of(tensor)) for path, tensor in tensors_in(output)]

    def count(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Operation | None:
        """Return the name by which an operation can be found in another pass."""
        raise NotImplementedError

    def summands(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Tensor, Tensor] | None:
        """Return the two tensors of an addition."""
        return summands_of(args, kwargs)

    def attends(self, func: Any, result: Tensor) -> bool:
        """Return whether an operation computes or contains attention weights."""
        raise NotImplementedError

    def compute(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return func(*args, **kwargs)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        operation = self.count(func, args, kwargs)
        pair = self.summands(args, kwargs) if func in ADDS else None
        operands = (self.node_of(pair[0]), self.node_of(pair[1])) if pair else None
        name = getattr(func, "__name__", str(func))
        # `x.expand_as(y)` and `zeros_like(x)` read only a shape from y and x: no value flows from there.
        given = args[:1] if name.endswith("_as") else () if name.endswith("_like") else (args, kwargs)
        parents = tuple(self.node_of(tensor) for _, tensor in tensors_in(given))
        result = self.compute(func, args, kwargs)
        if name == "__setitem__":  # writes into its first argument and returns nothing
            self._add(args[0], name, parents)
            return result
        if name in ("__get__", "__set__") and not isinstance(result, Tensor):
            return result
        for _, tensor in tensors_in(result):
            attends = self.attends(func, tensor)
            self._add(tensor, name, parents, operation=operation, operands=operands, attends=attends)
        return result

    def _add(self, tensor: Tensor, op: str, parents: tuple[int, ...], **facts: Any) -> int:
        index = len(self.nodes)
        shape = tuple(torch.Tensor.size(tensor)) if tensor.layout == torch.strided else ()
        self.nodes.append(Node(index, op, parents, shape, self._frames.stack, **facts))
        self._known[id(tensor)] = index
        self.tensors.append(tensor)
        return index


def over_tokens(weights: Tensor) -> bool:
    """Return whether a softmax is over the tokens of a sequence: (..., T, T), or a few more columns for sinks that are no tokens."""
    if weights.dim() < 3:
        return False
    extra = weights.shape[-1] - weights.shape[-2]
    return extra == 0 or (weights.dim() >= 4 and 0 < extra <= SINKS)


def summands_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Tensor, Tensor] | None:
    """Return the two tensors of an addition in order, or None for a sum with a number."""
    left = args[0] if args else kwargs.get("input")
    right = args[1] if len(args) > 1 else kwargs.get("other")
    return (left, right) if isinstance(left, Tensor) and isinstance(right, Tensor) else None


def tensors_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Tensor]]:
    """Yield every tensor in nested tuples, lists and dicts (a ModelOutput is a dict), with the path to it."""
    if isinstance(value, Tensor):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from tensors_in(item, (*path, key))
    elif isinstance(value, (tuple, list)):
        for key, item in enumerate(value):
            yield from tensors_in(item, (*path, key))


def map_tensors(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """Return nested tuples, lists and dicts with every tensor changed."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: map_tensors(item, change) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map_tensors(item, change) for item in value)
    return value


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return a copy of nested tuples, lists and dicts with one part replaced."""
    if not path:
        return new
    inner = put(value[path[0]], path[1:], new)
    if isinstance(value, dict):
        copy = type(value)(**value)
        copy[path[0]] = inner
        return copy
    items = list(value)
    items[path[0]] = inner
    return type(value)(items)
