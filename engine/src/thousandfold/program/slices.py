"""Gradients of slices of a tensor: zeros except at some indices of a dimension.

Autograd adds one such tensor for each slice that the network takes. If it takes T tokens one by one, this adds T times as many numbers as
necessary. Here sums of slices stay slices until an operation other than a sum needs them. Then each slice is written once.
"""

from dataclasses import dataclass, field
from typing import Any

from thousandfold.graph import replace_in
from thousandfold.program.atoms import Full, Shape, View, flat
from thousandfold.program.calls import AtenCall, lowers
from thousandfold.program.draft import ProgramDraft, laid, lanes_last
from thousandfold.program.parts import drop_dim, extents_like, place_in, resize


@dataclass(frozen=True, eq=False)
class Slices:
    shape: Shape
    dim: int
    parts: dict[int, View]  # index -> slice of size 1 along the dimension
    whole: list[View] = field(default_factory=list)  # the written tensor, if an operation needs it


@lowers("select_backward")
def select_backward(draft: ProgramDraft, call: AtenCall) -> Any:
    x, shape = call.args[0], call.shape
    if isinstance(x, Full):
        if not x.number:
            return Full(0.0, shape)
        x = draft.solid(x)
    dim = call.args[2] % len(shape)
    one = x.with_dims((*x.dims[:dim], (), *x.dims[dim:]))
    return Slices(shape, dim, {call.args[3] % shape[dim]: one})


def add_slices(draft: ProgramDraft, a: Any, b: Any) -> Any:
    """Return the sum of slices along one dimension, or None if a or b is something else."""
    if not isinstance(a, Slices) or not isinstance(b, Slices) or (a.shape, a.dim) != (b.shape, b.dim):
        return None
    parts = dict(a.parts)
    for index, part in b.parts.items():
        both = index in parts
        parts[index] = draft.pointwise("ADD", [parts[index], part], part.shape) if both else part
    return Slices(a.shape, a.dim, parts)


def solid(draft: ProgramDraft, x: Any) -> Any:
    """Return an argument in which views replace all slices."""

    def view(one: Slices) -> View:
        if not one.whole:
            one.whole.append(write(draft, one))
        return one.whole[0]

    return replace_in(x, Slices, view)


def write(draft: ProgramDraft, x: Slices) -> View:
    """Write slices to memory. A dimension of tokens is next to the samples; any other sliced dimension is outermost."""
    size = x.shape[x.dim]
    every = flat(extents_like(x.shape, [drop_dim(part, x.dim) for part in x.parts.values()]))
    parted = [extent for extent in every if extent.dim == x.dim]
    others = sorted((extent for extent in every if extent.dim != x.dim), key=lambda extent: -extent.strides[0])
    out = laid(lanes_last(others + parted if size == draft.length else parted + others), every, len(x.shape))
    at = 0
    for index in sorted(x.parts):
        zeros(draft, x, out, at, index - at)
        place = place_in(out, x.dim, index, 1)
        draft.pointwise("COPY", [x.parts[index]], x.parts[index].shape, place)
        at = index + 1
    zeros(draft, x, out, at, size - at)
    return out


def zeros(draft: ProgramDraft, x: Slices, out: View, start: int, count: int) -> None:
    if count:
        draft.pointwise("COPY", [0.0], resize(x.shape, x.dim, count), place_in(out, x.dim, start, count))
