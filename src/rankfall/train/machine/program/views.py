"""Operations that only look at memory in another way: they write no node."""

import math
from typing import Any

from rankfall.train.machine.program.atoms import (
    Atom,
    Full,
    Unsupported,
    View,
    align,
    flat,
    merge,
    reshape,
    size_of,
)
from rankfall.train.machine.program.calls import AtenCall, lowers
from rankfall.train.machine.program.draft import ProgramDraft, laid, lanes_last


@lowers("alias", "detach", "clone", "lift_fresh_copy", "contiguous", "view_copy")
def same(draft: ProgramDraft, call: AtenCall) -> Any:
    return call.args[0]


@lowers("view", "_unsafe_view", "reshape")
def lower_reshape(draft: ProgramDraft, call: AtenCall) -> Any:
    x = call.args[0]
    return Full(x.number, call.shape) if isinstance(x, Full) else reshape(x, call.shape)


@lowers("permute", "transpose", "t")
def lower_permute(draft: ProgramDraft, call: AtenCall) -> Any:
    x = call.args[0]
    if isinstance(x, Full):
        return Full(x.number, call.shape)
    order = list(range(len(x.dims)))
    if call.name == "permute":
        order = [i % len(order) for i in call.args[1]]
    else:
        i, j = (call.args[1], call.args[2]) if call.name == "transpose" else (0, len(order) - 1)
        order[i], order[j] = order[j], order[i]
    return x.with_dims(x.dims[i] for i in order)


@lowers("unsqueeze")
def lower_unsqueeze(draft: ProgramDraft, call: AtenCall) -> Any:
    x = call.args[0]
    if isinstance(x, Full):
        return Full(x.number, call.shape)
    dims = list(x.dims)
    dims.insert(call.args[1] % (len(dims) + 1), ())
    return x.with_dims(dims)


@lowers("squeeze")
def lower_squeeze(draft: ProgramDraft, call: AtenCall) -> Any:
    x = call.args[0]
    if isinstance(x, Full):
        return Full(x.number, call.shape)
    which = call.args[1] if len(call.args) > 1 else range(len(x.dims))
    gone = {i % len(x.dims) for i in ([which] if isinstance(which, int) else which)}
    return x.with_dims(dim for i, dim in enumerate(x.dims) if i not in gone or dim)


@lowers("expand")
def lower_expand(draft: ProgramDraft, call: AtenCall) -> Any:
    x = call.args[0]
    if isinstance(x, Full):
        return Full(x.number, call.shape)
    own = ((),) * (len(call.shape) - len(x.dims)) + x.dims
    return x.with_dims(dim or repeat_atom(size) for dim, size in zip(own, call.shape))


@lowers("repeat")
def lower_repeat(draft: ProgramDraft, call: AtenCall) -> Any:
    """A tensor several times one behind the other: each dimension is read again from its beginning."""
    x = call.args[0]
    if isinstance(x, Full):
        return Full(x.number, call.shape)
    own = ((),) * (len(call.shape) - len(x.dims)) + x.dims
    if any(count > 1 and any(atom.lane for atom in dim) for count, dim in zip(call.args[1], own)):
        raise Unsupported("the samples of a batch several times")
    return x.with_dims((*repeat_atom(count), *dim) for count, dim in zip(call.args[1], own))


@lowers("broadcast_in_dim")
def broadcast(draft: ProgramDraft, call: AtenCall) -> Any:
    x = call.args[0]
    if isinstance(x, Full):
        return Full(x.number, call.shape)
    dims = [repeat_atom(size) for size in call.shape]
    for dim, place in zip(x.dims, call.args[2]):
        dims[place] = dim or dims[place]
    return x.with_dims(dims)


def repeat_atom(size: int) -> tuple[Atom, ...]:
    return (Atom(size, 0),) if size > 1 else ()


@lowers("select", "slice")
def cut(draft: ProgramDraft, call: AtenCall) -> Any:
    x = call.args[0]
    if isinstance(x, Full):
        return Full(x.number, call.shape)
    dim = call.arg(1, 0) % len(x.dims)
    size = x.shape[dim]
    if call.name == "select":
        start = call.args[2] % size
        found = step_view(draft, x, dim, start, 1, 1)
        return found.with_dims(own for i, own in enumerate(found.dims) if i != dim)
    start, step = call.arg(2, 0), call.arg(4, 1)
    start = max(0, start + size) if start < 0 else min(start, size)
    return step_view(draft, x, dim, start, call.shape[dim], step)


def step_view(draft: ProgramDraft, x: View, dim: int, start: int, count: int, step: int) -> View:
    """Of a dimension the elements start, start + step, ..."""
    atoms = x.dims[dim]
    dims = list(x.dims)
    if count == 1:
        offset, rest = 0, start
        for atom in reversed(atoms):
            offset += rest % atom.size * atom.stride
            rest //= atom.size
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
    """Of a dimension `count` elements from `start` on."""
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
    # A part of a lane is no lane: it is computed like any other dimension.
    dims[dim] = (Atom(count, atoms[0].stride),) if count > 1 else ()
    return x.with_dims(dims, start * atoms[0].stride)


def copy_view(draft: ProgramDraft, x: View, dim: int) -> View:
    """A copy in which a dimension is one run of equal steps."""
    extents = align([x], x.shape)
    if any(extent.lane for extent in extents[dim]):
        raise Unsupported("a part of the samples of a batch")
    every = flat(extents)
    others = [extent for extent in every if extent.dim != dim and not extent.lane]
    out = laid([*others, *extents[dim], *(extent for extent in every if extent.lane)], every, len(x.dims))
    return draft.pointwise("COPY", [x], x.shape, out)


@lowers("flip")
def lower_flip(draft: ProgramDraft, call: AtenCall) -> Any:
    """A copy: no instruction reads backwards but the pointwise."""
    x = call.args[0]
    if isinstance(x, Full):
        return x
    dims, offset = list(x.dims), 0
    for dim in call.args[1]:
        offset += sum(atom.stride * (atom.size - 1) for atom in dims[dim])
        dims[dim] = tuple(Atom(atom.size, -atom.stride, atom.lane) for atom in dims[dim])
    backwards = x.with_dims(dims, offset)
    extents = flat(align([x], x.shape))
    out = laid(lanes_last(extents), extents, len(dims))
    return draft.pointwise("COPY", [backwards], x.shape, out)


@lowers("split_with_sizes", "split", "chunk", "unbind")
def pieces(draft: ProgramDraft, call: AtenCall) -> Any:
    x, at = call.args[0], 0
    found: list[Any] = []
    given = call.kwargs.get("dim", call.arg(1 if call.name == "unbind" else 2, 0))
    for piece in call.value:
        if isinstance(x, Full) or not math.prod(piece.shape):
            found.append(Full(getattr(x, "number", 0.0), piece.shape))
            continue
        dim = given % len(x.dims)
        if call.name == "unbind":
            one = step_view(draft, x, dim, at, 1, 1)
            found.append(one.with_dims(own for i, own in enumerate(one.dims) if i != dim))
            at += 1
        else:
            found.append(part_of(draft, x, dim, at, piece.shape[dim]))
            at += piece.shape[dim]
    return found
