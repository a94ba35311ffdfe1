"""Lowering of operations that assemble tensors: concatenation, padding, writing to a part of a tensor, and gradients of slices.

Autograd adds a tensor of zeros with one slice for each slice that the network takes. If it takes T tokens one by one, this adds T times as
many numbers as necessary. Here sums of slices stay slices until an operation other than a sum needs them. Then each slice is written once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from thousandfold.graph import replace_in
from thousandfold.program.atoms import Atom, Extent, Full, Shape, Unsupported, View, flat
from thousandfold.program.draft import AtenCall, ProgramDraft, lanes_last, lowers, new_view, number_of, stored_number
from thousandfold.program.views import part_of, step_view


def extents_like(shape: Shape, like: Sequence[Any]) -> list[list[Extent]]:
    """Return the extents of a tensor of this shape, with atoms from similar tensors."""
    views = [x for x in like if isinstance(x, View)]
    extents = []
    for dim, size in enumerate(shape):
        same = [view.dims[dim] for view in views if view.shape[dim] == size and view.dims[dim]]
        # An expanded tensor, such as a learned token for all samples, does not mark the lane.
        known = [atoms for atoms in same if any(atom.lane for atom in atoms)] or same
        atoms = known[0] if known else ((Atom(size, 1),) if size > 1 else ())
        extents.append([Extent(dim, atom.size, atom.lane, (atom.stride,)) for atom in atoms])
    return extents


def blank(shape: Shape, like: Sequence[Any]) -> View:
    """Return a new tensor with atoms from similar tensors: lanes innermost, the others reversed."""
    extents = extents_like(shape, like)
    flat_extents = flat(extents)
    lanes = any(extent.lane for extent in flat_extents)
    return new_view(lanes_last(reversed(flat_extents)) if lanes else flat_extents, flat_extents, len(shape))


def drop_dim(x: View, dim: int) -> View:
    """Return a view without this dimension."""
    return x.with_dims(() if i == dim else atoms for i, atoms in enumerate(x.dims))


def place_in(out: View, dim: int, start: int, count: int, step: int = 1) -> View:
    """Return the part of a blank tensor with elements start, start + step, ... of a dimension, for writing."""
    atoms = out.dims[dim]
    if len(atoms) > 1:
        raise Unsupported("a part of a dimension that is made of several")
    stride = atoms[0].stride if atoms else 0
    dims = list(out.dims)
    dims[dim] = (Atom(count, stride * step),) if count > 1 else ()
    return out.with_dims(dims, start * stride)


def resize(shape: Shape, dim: int, size: int) -> Shape:
    return tuple(size if i == dim else length for i, length in enumerate(shape))


@lowers("cat")
def lower_cat(draft: ProgramDraft, call: AtenCall) -> Any:
    parts = [part for part in call.args[0] if math.prod(part.shape)]  # empty tensors may have any dimensions
    return join(draft, parts, call.arg(1, 0) % len(call.shape), call.shape)


def join(draft: ProgramDraft, parts: Sequence[Any], dim: int, shape: Shape) -> View:
    out = blank(shape, [drop_dim(part, dim) for part in parts if isinstance(part, View)])
    at = 0
    for part in parts:
        count = part.shape[dim]
        if count:
            draft.pointwise("COPY", [number_of(part)], resize(shape, dim, count), place_in(out, dim, at, count))
        at += count
    return out


@lowers("slice_scatter")
def lower_slice_scatter(draft: ProgramDraft, call: AtenCall) -> Any:
    """Return x with v written to a part of a dimension."""
    x, v, shape = call.args[0], call.args[1], call.shape
    dim = call.arg(2, 0) % len(shape)
    size = shape[dim]
    start, end = (max(0, i + size) if i < 0 else min(i, size) for i in (call.arg(3, 0), call.arg(4, size)))
    step = call.arg(5, 1)
    count = max(0, -((start - end) // step))
    if count == size:
        return v
    if count == 0:
        return x
    out = blank(shape, [x] + ([drop_dim(v, dim)] if isinstance(v, View) else []))
    stop = min(size, start + count * step)
    between = [(first, -((first - stop) // step), step) for first in range(start + 1, start + step)]
    for first, many, apart in ((0, start, 1), *between, (stop, size - stop, 1)):
        if many > 0:
            source = step_view(draft, x, dim, first, many, apart) if isinstance(x, View) else x.number
            place = place_in(out, dim, first, many, apart)
            draft.pointwise("COPY", [source], resize(shape, dim, many), place)
    draft.pointwise("COPY", [number_of(v)], resize(shape, dim, count), place_in(out, dim, start, count, step))
    return out


@lowers("constant_pad_nd")
def lower_pad(draft: ProgramDraft, call: AtenCall) -> Any:
    """Pad with a number. Negative amounts crop."""
    x, amounts, number = call.args[0], call.args[1], stored_number(call.arg(2, 0.0), call.value.dtype)
    if isinstance(x, Full):
        if not math.prod(x.shape):
            return Full(number, call.shape)
        if any(amount > 0 for amount in amounts) and x.number != number:
            x = draft.solid(x)
        else:
            return Full(x.number, call.shape)
    for i in range(len(amounts) // 2):
        dim, (before, after) = len(call.shape) - 1 - i, amounts[2 * i : 2 * i + 2]
        if before < 0 or after < 0:
            start = max(0, -before)
            x = part_of(draft, x, dim, start, x.shape[dim] - max(0, -after) - start)
        before, after = max(0, before), max(0, after)
        if before or after:
            shape = resize(x.shape, dim, x.shape[dim] + before + after)
            ends = [Full(number, resize(shape, dim, count)) for count in (before, after)]
            x = join(draft, [ends[0], x, ends[1]], dim, shape)
    return x


@dataclass(frozen=True, eq=False)
class Slices:
    shape: Shape
    dim: int
    parts: dict[int, View]  # index -> slice of size 1 along the dimension
    whole: list[View] = field(default_factory=list)  # the written tensor, if an operation needs it


@lowers("select_backward")
def lower_select_backward(draft: ProgramDraft, call: AtenCall) -> Any:
    x, shape = call.args[0], call.shape
    if isinstance(x, Full):
        if not x.number:
            return Full(0.0, shape)
        x = draft.solid(x)
    dim = call.args[2] % len(shape)
    part = x.with_dims((*x.dims[:dim], (), *x.dims[dim:]))
    return Slices(shape, dim, {call.args[3] % shape[dim]: part})


def add_slices(draft: ProgramDraft, a: Any, b: Any) -> Any:
    """Return the sum of slices along one dimension, or None if a or b is something else."""
    if not isinstance(a, Slices) or not isinstance(b, Slices) or (a.shape, a.dim) != (b.shape, b.dim):
        return None
    parts = dict(a.parts)
    for index, part in b.parts.items():
        overlaps = index in parts
        parts[index] = draft.pointwise("ADD", [parts[index], part], part.shape) if overlaps else part
    return Slices(a.shape, a.dim, parts)


def solid(draft: ProgramDraft, x: Any) -> Any:
    """Return an argument in which views replace all slices."""

    def view(slices: Slices) -> View:
        if not slices.whole:
            slices.whole.append(write(draft, slices))
        return slices.whole[0]

    return replace_in(x, Slices, view)


def write(draft: ProgramDraft, x: Slices) -> View:
    """Write slices to memory. A dimension of tokens is next to the samples; any other sliced dimension is outermost."""
    size = x.shape[x.dim]
    flat_extents = flat(extents_like(x.shape, [drop_dim(part, x.dim) for part in x.parts.values()]))
    parted = [extent for extent in flat_extents if extent.dim == x.dim]
    others = sorted((extent for extent in flat_extents if extent.dim != x.dim), key=lambda extent: -extent.strides[0])
    out = new_view(lanes_last(others + parted if size == draft.length else parted + others), flat_extents, len(x.shape))
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
