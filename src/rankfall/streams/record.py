"""The nodes of a recorded pass, their graph, the kinds of operations that matter in it, and the tensors in nested arguments and outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rankfall.streams.frames import Call, Operation

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
SINKS = 4  # most columns of attention weights that are sinks and no tokens


def is_fused(func: Any) -> bool:
    """Return whether an operation is attention with its softmax inside. FlexAttention is compared by name: it exists only once imported."""
    return func in FUSED_ATTENTION or getattr(func, "__name__", "") == "flex_attention"


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
    part: tuple[int, int] | None = None  # its place among the outputs of an operation with several, and their number


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
        mapped = copy(value)  # of its class: a ModelOutput has its items as attributes
        for key, item in value.items():
            mapped[key] = map_tensors(item, change)
        return mapped
    if isinstance(value, tuple) and hasattr(value, "_fields"):  # a named tuple
        return type(value)(*(map_tensors(item, change) for item in value))
    if type(value) in (list, tuple):
        return type(value)(map_tensors(item, change) for item in value)
    return value


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return a copy of nested tuples, lists and dicts with one part replaced."""
    if not path:
        return new
    inner = put(value[path[0]], path[1:], new)
    if isinstance(value, dict):
        changed = type(value)(**value)
        changed[path[0]] = inner
        return changed
    items = list(value)
    items[path[0]] = inner
    return type(value)(items)


CHOICES = frozenset({"topk", "argsort", "sort"})  # operations that choose tokens
JOINS = frozenset({"cat", "concat", "concatenate", "stack"})


class Graph:
    """The ancestors of every node, each set as a bit mask."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.up: list[int] = []  # ancestors of each node, itself included
        for node in nodes:
            mask = 1 << node.index
            for parent in node.parents:
                mask |= self.up[parent]
            self.up.append(mask)
        self.attention = [node.index for node in nodes if node.attends]

    def above(self, upper: int, lower: int) -> bool:
        """Return whether `upper` is `lower` or an ancestor of it."""
        return bool(self.up[lower] >> upper & 1)

    def between(self, upper: int, index: int, lower: int) -> bool:
        """Return whether a node is on a way from `upper` to `lower`, or one of the two."""
        return self.above(upper, index) and self.above(index, lower)

    def attends_between(self, upper: int, lower: int) -> bool:
        return any(self.between(upper, mix, lower) for mix in self.attention)

    def inputs(self, index: int) -> tuple[int, ...]:
        """Return the parents of a node. The parent of a piece of tensors that were joined before, as x of [x, y], is that tensor."""
        node = self.nodes[index]
        if node.part is not None and node.parents:
            place, count = node.part
            joined = self.nodes[self.source(node.parents[0])]
            if joined.op in JOINS and len(joined.parents) == count:
                piece = joined.parents[place]
                if self.nodes[piece].shape == node.shape:
                    return (piece,)
        return node.parents

    def source(self, index: int) -> int:
        """Return the node where this state was computed, looking through changes of layout and dtype and constant factors."""
        while True:
            node = self.nodes[index]
            pieces = self.inputs(index)
            if pieces is not node.parents:
                index = pieces[0]
                continue
            tensors = [
                parent
                for parent in node.parents
                if (not self.nodes[parent].leaf or len(node.parents) == 1)
                and self.nodes[parent].shape not in ((), (1,))
            ]
            scaled = node.op in ("mul", "div") and len(tensors) == 1
            if not (node.op in SAME_STATE or scaled) or not tensors:
                return index
            if self.nodes[tensors[0]].shape != node.shape and size_of(self.nodes[tensors[0]]) != size_of(node):
                return index
            index = tensors[0]

    def nearest(self, index: int, targets: set[int]) -> int | None:
        """Return the target that is the fewest operations above a node, or None if no target is above it."""
        visited, front = {index}, [index]
        while front:
            for node in front:
                if node in targets:
                    return node
            parents = dict.fromkeys(parent for node in front for parent in self.nodes[node].parents)
            front = [parent for parent in parents if parent not in visited]
            visited.update(front)
        return None


def size_of(node: Node) -> int:
    return math.prod(node.shape)
