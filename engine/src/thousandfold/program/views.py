"""Lowering of views, most of which need no node."""

import math
from collections.abc import Callable
from typing import Any

from thousandfold.program.atoms import Atom, Full, Unsupported, View, align, flat, merge, reshape, size_of
from thousandfold.program.draft import AtenCall, ProgramDraft, lanes_last, lowers, new_view

ViewLowering = Callable[[ProgramDraft, View, AtenCall], View]


def lowers_view(*names: str) -> Callable[[ViewLowering], ViewLowering]:
    """Register a function as the lowering of views of the first argument. A view of `Full` is `Full`."""

    def mark(function: ViewLowering) -> ViewLowering:
        @lowers(*names)
        def lower(draft: ProgramDraft, call: AtenCall) -> View | Full:
            x = call.args[0]
            return Full(x.number, call.shape) if isinstance(x, Full) else function(draft, x, call)

        return function

    return mark


@lowers_view("alias", "detach", "clone", "lift_fresh_copy")
def lower_alias(draft: ProgramDraft, x: View, call: AtenCall) -> View:
    return x


@lowers_view("view", "reshape")
def lower_reshape(draft: ProgramDraft, x: View, call: AtenCall) -> View:
    return reshape(x, call.shape)


@lowers_view("permute")
def lower_permute(draft: ProgramDraft, x: View, call: AtenCall) -> View:
    return x.with_dims(x.dims[i] for i in call.args[1])


@lowers_view("unsqueeze")
def lower_unsqueeze(draft: ProgramDraft, x: View, call: AtenCall) -> View:
    dims = list(x.dims)
    dims.insert(call.args[1] % (len(dims) + 1), ())
    return x.with_dims(dims)


@lowers_view("squeeze")
def lower_squeeze(draft: ProgramDraft, x: View, call: AtenCall) -> View:
    which = call.args[1] if len(call.args) > 1 else range(len(x.dims))
    gone = {i % len(x.dims) for i in ([which] if isinstance(which, int) else which)}
    return x.with_dims(dim for i, dim in enumerate(x.dims) if i not in gone or dim)


@lowers_view("expand")
def lower_expand(draft: ProgramDraft, x: View, call: AtenCall) -> View:
    dims = ((),) * (len(call.shape) - len(x.dims)) + x.dims
    return x.with_dims(dim or repeat_atom(size) for dim, size in zip(dims, call.shape))


@lowers_view("repeat")
def lower_repeat(draft: ProgramDraft, x: View, call: AtenCall) -> View:
    """Repeat a tensor along its dimensions."""
    dims = ((),) * (len(call.shape) - len(x.dims)) + x.dims
    if any(count > 1 and any(atom.lane for atom in dim) for count, dim in zip(call.args[1], dims)):
        raise Unsupported("the samples of a batch several times")
    return x.with_dims((*repeat_atom(count), *dim) for count, dim in zip(call.args[1], dims))


@lowers_view("broadcast_in_dim")
def lower_broadcast(draft: ProgramDraft, x: View, call: AtenCall) -> View:
    dims = [repeat_atom(size) for size in call.shape]
    for dim, place in zip(x.dims, call.args[2]):
        dims[place] = dim or dims[place]
    return x.with_dims(dims)


def repeat_atom(size: int) -> tuple[Atom, ...]:
    return (Atom(size, 0),) if size > 1 else ()


@lowers_view("select", "slice")
def lower_slice(draft: ProgramDraft, x: View, call: AtenCall) -> View:
    dim = call.arg(1, 0) % len(x.dims)
    size = x.shape[dim]
    if call.name == "select":
        start = call.args[2] % size
        part = step_view(draft, x, dim, start, 1, 1)
        return part.with_dims(atoms for i, atoms in enumerate(part.dims) if i != dim)
    start, step = call.arg(2, 0), call.arg(4, 1)
    start = max(0, start + size) if start < 0 else min(start, size)
    return step_view(draft, x, dim, start, call.shape[dim], step)


def step_view(draft: ProgramDraft, x: View, dim: int, start: int, count: int, step: int) -> View:
    """Return elements start, start + step, ... of a dimension."""
    atoms = x.dims[dim]
    dims = list(x.dims)
    if count == 1:
        offset, index = 0, start
        for atom in reversed(atoms):
            offset += index % atom.size * atom.stride
            index //= atom.size
        dims[dim] = ()
        return x.with_dims(dims, offset)
    if step == 1:
        return part_of(draft, x, dim, start, count)
    if len(atoms) > 1:
        return step_view(draft, copy_view(draft, x, dim), dim, start, count, step)
    if any(atom.lane for atom in atoms):
        raise Unsupported("every so many samples of a batch")
    dims[dim] = (Atom(count, atoms[0].stride * step),)
    return x.with_dims(dims, start * atoms[0].stride)


def part_of(draft: ProgramDraft, x: View, dim: int, start: int, count: int) -> View:
    """Return `count` elements of a dimension, beginning with `start`."""
    atoms = x.dims[dim]
    dims = list(x.dims)
    if count == x.shape[dim]:
        return x
    if len(atoms) > 1:
        inner = size_of(atoms[1:])
        if start % inner or count % inner:
            return part_of(draft, copy_view(draft, x, dim), dim, start, count)
        dims[dim] = merge((Atom(count // inner, atoms[0].stride, False), *atoms[1:]))
        if atoms[0].lane:
            raise Unsupported("a part of the samples of a batch")
        return x.with_dims(dims, start // inner * atoms[0].stride)
    # A part of the lane is not marked as a lane, and is treated like any other dimension.
    dims[dim] = (Atom(count, atoms[0].stride),) if count > 1 else ()
    return x.with_dims(dims, start * atoms[0].stride)


def copy_view(draft: ProgramDraft, x: View, dim: int) -> View:
    """Return a copy in which a dimension is one atom."""
    extents = align([x], x.shape)
    if any(extent.lane for extent in extents[dim]):
        raise Unsupported("a part of the samples of a batch")
    flat_extents = flat(extents)
    others = [extent for extent in flat_extents if extent.dim != dim and not extent.lane]
    out = new_view(
        [*others, *extents[dim], *(extent for extent in flat_extents if extent.lane)], flat_extents, len(x.dims)
    )
    return draft.pointwise("COPY", [x], x.shape, out)


@lowers_view("flip")
def lower_flip(draft: ProgramDraft, x: View, call: AtenCall) -> View:
    """Flip by a copy, since only the pointwise instruction reads backwards."""
    dims, offset = list(x.dims), 0
    for dim in call.args[1]:
        offset += sum(atom.stride * (atom.size - 1) for atom in dims[dim])
        dims[dim] = tuple(Atom(atom.size, -atom.stride, atom.lane) for atom in dims[dim])
    backwards = x.with_dims(dims, offset)
    extents = flat(align([x], x.shape))
    out = new_view(lanes_last(extents), extents, len(dims))
    return draft.pointwise("COPY", [backwards], x.shape, out)


@lowers("split_with_sizes")
def lower_split(draft: ProgramDraft, call: AtenCall) -> Any:
    x, at = call.args[0], 0
    parts: list[Any] = []
    for piece in call.value:
        if isinstance(x, Full) or not math.prod(piece.shape):
            parts.append(Full(getattr(x, "number", 0.0), piece.shape))
            continue
        dim = call.kwargs.get("dim", call.arg(2, 0)) % len(x.dims)
        parts.append(part_of(draft, x, dim, at, piece.shape[dim]))
        at += piece.shape[dim]
    return parts
