"""A program in progress: nodes, one per operation, the constants that they read, and the functions that lower ATen operations to nodes."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from thousandfold.codes import CONST, PW
from thousandfold.graph import Form
from thousandfold.program.atoms import (
    Atom,
    Extent,
    Full,
    Shape,
    Unsupported,
    Value,
    View,
    align,
    contiguous,
    flat,
    merge,
    offsets,
)

LARGEST = 2**24  # largest supported integer: integers are stored as floats, and float32 has all up to this


@dataclass(eq=False)
class ProgramNode:
    """One operation. A pointwise one has the sizes of its iteration space, outer to inner, and the strides of each input."""

    kind: int
    out: View
    ins: list[Any]  # View, or numbers
    fields: dict[str, Any] = field(default_factory=dict)
    order: tuple[int, ...] = ()
    strides: list[list[int]] = field(default_factory=list)


class ProgramDraft:
    def __init__(self, length: int = 0, largest: int = 1) -> None:
        """Start a draft. `length`: tokens of a sample, next to the lanes in products. `largest`: largest integer of the inputs."""
        self.largest = largest
        self.nodes: list[ProgramNode] = []
        self.constants: dict[int, np.ndarray] = {}  # by offset
        self.constant_size = 0
        self.length = length
        self.strayed: list[View] = []  # counts of indices outside their tables

    def constant(self, x: Any) -> Any:
        """Return a view of a tensor that does not depend on data, or `Full` if its numbers are equal."""
        if not isinstance(x, Tensor):
            return x
        if not x.numel():
            return Full(0.0, tuple(x.shape))
        numbers = x.detach().double().reshape(-1)
        if not x.is_floating_point() and float(numbers.abs().max()) > LARGEST:
            raise Unsupported(f"integers up to {float(numbers.abs().max()):.0f}")
        if bool((numbers == numbers[0]).all()):
            return Full(float(numbers[0]), tuple(x.shape))
        value = Value(x.numel(), (CONST, self.constant_size))
        self.constants[self.constant_size] = numbers.numpy()
        self.constant_size += x.numel()
        return contiguous(value, tuple(x.shape))

    def numbers_of(self, x: View) -> np.ndarray | None:
        """Return the numbers of a constant in order, or None if x is no constant."""
        return self.constants[x.value.place[1]] if x.value.place and x.value.place[0] == CONST else None

    def solid(self, x: Any) -> View:
        """Return x as a view. A `Full` is written to memory."""
        return x if isinstance(x, View) else self.pointwise("COPY", [x.number], x.shape)

    def pointwise(self, op: str, ins: Sequence[Any], shape: Shape, out: View | None = None) -> View:
        """Add a pointwise node. `ins`: views and numbers. `out`: view to write to; by default a new value."""
        views = [x for x in ins if isinstance(x, View)]
        if out is None and (same := unchanged_operand(op, ins, views, shape)) is not None:
            return same
        extents = flat(align(views + ([out] if out else []), shape))
        fields: dict[str, Any] = {"op": op}
        if out is None:
            order = order_like(extents, len(views))
            out = new_view(order, extents, len(shape))
        else:
            order = sorted(extents, key=lambda extent: -extent.strides[-1])
            fields["written"] = [extent.strides[-1] for extent in order]
        strides = [[extent.strides[k] for extent in order] for k in range(len(views))]
        self.nodes.append(ProgramNode(PW, out, list(ins), fields, tuple(extent.size for extent in order), strides))
        return out

    def add(self, kind: int, out: View, ins: list[Any], fields: dict[str, Any]) -> View:
        """Add a node that is not pointwise, and return its result."""
        self.nodes.append(ProgramNode(kind, out, ins, fields))
        return out

    def write(self, x: Any, place: tuple[int, int], shape: Shape) -> None:
        """Write a result to its place. If it is a whole new value in that order, the value itself is put there without a copy."""
        x = self.solid(x if isinstance(x, (View, Full)) else Full(float(x), shape))
        extents = flat(align([x, contiguous(Value(1), shape)], shape))
        size = max(1, math.prod(shape))
        in_order = all(extent.strides[0] == extent.strides[1] for extent in extents)
        if x.value.place is None and x.offset == 0 and in_order and x.value.size == size:
            x.value.place = place
        else:
            self.pointwise("COPY", [x], shape, contiguous(Value(size, place), shape))


def unchanged_operand(op: str, ins: Sequence[Any], views: Sequence[View], shape: Shape) -> View | None:
    """Return the operand if the operation does not change it, such as adding 0 or multiplying by 1, else None."""
    if len(ins) != 2 or len(views) != 1 or views[0].shape != tuple(shape):
        return None
    second = ins[1] is not views[0]
    number = ins[1] if second else ins[0]
    neutral = (op, number) in (("ADD", 0), ("MUL", 1)) or (second and (op, number) in (("SUB", 0), ("DIV", 1)))
    return views[0] if neutral else None


def number_of(x: Any) -> Any:
    """Return an operand of a pointwise node as a view or a number."""
    return x.number if isinstance(x, Full) else (x if isinstance(x, View) else float(x))


def stored_number(number: float, dtype: torch.dtype) -> float:
    """Return a number as stored in a tensor of this format. Integers and booleans have no fractions."""
    return float(number) if dtype.is_floating_point else float(torch.tensor(number).to(dtype))


def lanes_last(extents: Iterable[Extent], key: Callable[[Extent], Any] | None = None) -> list[Extent]:
    """Order extents by `key`, if any, with lanes innermost."""
    extents = list(extents)
    others = [extent for extent in extents if not extent.lane]
    return (sorted(others, key=key) if key else others) + [extent for extent in extents if extent.lane]


def order_like(extents: Sequence[Extent], views: int) -> list[Extent]:
    """Order extents as in the first operand with all of them, else as in the largest one, after those that it lacks. Lanes are last."""
    leader = next((k for k in range(views) if all(extent.strides[k] for extent in extents)), None)
    if leader is not None:
        return lanes_last(extents, lambda extent: -extent.strides[leader])
    if not any(extent.lane for extent in extents):
        return list(extents)
    sizes = [math.prod(extent.size for extent in extents if extent.strides[k]) for k in range(views)]
    k = sizes.index(max(sizes))
    covered = sorted((extent for extent in extents if extent.strides[k]), key=lambda extent: -extent.strides[k])
    return lanes_last([*(extent for extent in reversed(extents) if not extent.strides[k]), *covered])


def new_view(order: Sequence[Extent], extents: Sequence[Extent], dims: int) -> View:
    """Return a view with `dims` dimensions of a new value, whose extents have this order, outer to inner."""
    return view_and_places(order, extents, dims)[0]


def view_and_places(order: Sequence[Extent], extents: Sequence[Extent], dims: int) -> tuple[View, dict[int, int]]:
    """Return such a view, and the stride of each extent by id."""
    where, stride = places(order)
    atoms: list[list[Atom]] = [[] for _ in range(dims)]
    for extent in extents:
        atoms[extent.dim].append(Atom(extent.size, where[id(extent)], extent.lane))
    return View(Value(stride), 0, tuple(merge(dim) for dim in atoms)), where


def places(order: Sequence[Extent]) -> tuple[dict[int, int], int]:
    """Return the stride of each extent in this order, by id, and the total size."""
    where, stride = {}, 1
    for extent in reversed(order):
        where[id(extent)] = stride
        stride *= extent.size
    return where, stride


def offsets_in(where: dict[int, int], extents: Sequence[Extent]) -> np.ndarray:
    """Return the offsets of the elements of these extents in a tensor with the strides of `places`."""
    return offsets([extent.size for extent in extents], [where[id(extent)] for extent in extents])


def is_integer(dtype: torch.dtype) -> bool:
    """Return whether a dtype is an integer type that does not overflow below LARGEST."""
    return dtype in (torch.int64, torch.int32)


@dataclass(frozen=True)
class AtenCall:
    name: str  # without namespace and overload
    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    value: Any  # form of the result, or a list or tuple of forms
    dtypes: tuple[torch.dtype, ...]  # dtypes of the input tensors

    @property
    def shape(self) -> Shape:
        return tuple(self.value.shape)

    def arg(self, i: int, default: Any = None) -> Any:
        """Return a positional argument, or the default if it is missing or None."""
        value = self.args[i] if len(self.args) > i else None
        return default if value is None else value

    @property
    def is_bool(self) -> bool:
        return isinstance(self.value, Form) and self.value.dtype == torch.bool


Lowering = Callable[[ProgramDraft, AtenCall], Any]  # returns the result as View or Full
LOWERINGS: dict[str, Lowering] = {}


def lowers(*names: str) -> Callable[[Lowering], Lowering]:
    """Register a function as the lowering of the operations with these names."""

    def mark(function: Lowering) -> Lowering:
        LOWERINGS.update(dict.fromkeys(names, function))
        return function

    return mark
