"""Lowering of reductions."""

import math
from typing import Any

import torch

from thousandfold.codes import ARGMAX, MAXIMUM, MINIMUM, RED, SUM
from thousandfold.program.atoms import OneHot, Unsupported, View, align, collapse, flat, offsets, reshape
from thousandfold.program.draft import (
    AtenCall,
    ProgramDraft,
    is_integer,
    lanes_last,
    lowers,
    view_and_places,
)

PAIR = 2
KINDS = {"sum": SUM, "mean": SUM, "amax": MAXIMUM, "any": MAXIMUM, "amin": MINIMUM, "argmax": ARGMAX}


@lowers(*KINDS)
def lower_reduction(draft: ProgramDraft, call: AtenCall) -> Any:
    x = draft.solid(call.args[0])
    axes = axes_of(call, x)
    if is_integer(call.value.dtype) and call.name != "argmax" and call.dtypes[0].is_floating_point:
        raise Unsupported("a sum of numbers as an integer")
    if call.name == "any" and call.dtypes[0] != torch.bool:
        x = draft.pointwise("NE", [x, 0.0], x.shape)
    if call.name == "sum" and isinstance(x, OneHot) and axes == {x.dim} and isinstance(x.number, View):
        return reshape(x.number, call.shape)
    if call.name == "mean":
        return reshape(mean(draft, x, axes, math.prod(x.shape[i] for i in axes)), call.shape)
    return reshape(reduce(draft, x, axes, KINDS[call.name]), call.shape)


def mean(draft: ProgramDraft, x: View, axes: set[int], count: int) -> View:
    """Divide a sum by a count, as PyTorch does. A product with 1 / n would make the mean of n ones less than 1 for many n, such as 41."""
    total = reduce(draft, x, axes, SUM)
    return draft.pointwise("DIV", [total, float(count)], total.shape)


@lowers("var")
def lower_variance(draft: ProgramDraft, call: AtenCall) -> Any:
    x = draft.solid(call.args[0])
    axes = axes_of(call, x)
    count = math.prod(x.shape[i] for i in axes)
    correction = call.arg(2, call.kwargs.get("correction"))
    correction = 1 if correction is None else correction
    away = draft.pointwise("SUB", [x, mean(draft, x, axes, count)], x.shape)
    square = draft.pointwise("MUL", [away, away], x.shape)
    return reshape(mean(draft, square, axes, count - correction), call.shape)


def axes_of(call: AtenCall, x: View) -> set[int]:
    axes = call.args[1] if len(call.args) > 1 else None
    if axes is None or axes == []:
        return set(range(len(x.dims)))
    return {i % len(x.dims) for i in ([axes] if isinstance(axes, int) else axes)}


def in_pairs(draft: ProgramDraft, x: View, axes: set[int]) -> View:
    """Add pairs along summed atoms of size 2 and drop these atoms."""
    for dim in axes:
        for i, atom in enumerate(x.dims[dim]):
            if atom.size == PAIR and not atom.lane and math.prod(x.shape[k] for k in axes) > PAIR:
                first = x.with_dims(
                    (atoms[:i] + atoms[i + 1 :] if k == dim else atoms) for k, atoms in enumerate(x.dims)
                )
                pair = [first, View(x.value, x.offset + atom.stride, first.dims)]
                return in_pairs(draft, draft.pointwise("ADD", pair, first.shape), axes)
    return x


def reduce(draft: ProgramDraft, x: View, axes: set[int], kind: int) -> View:
    """Reduce dimensions to size 1. Two tokens of a sample are added before samples are added. If they are each other's negatives, as on a
    circle, their sum is exactly 0."""
    if kind == SUM and draft.length == PAIR:
        x = in_pairs(draft, x, axes)
    extents = align([x], x.shape)
    kept = flat(dim for i, dim in enumerate(extents) if i not in axes)
    gone = flat(dim for i, dim in enumerate(extents) if i in axes)
    order = lanes_last(kept, lambda extent: -extent.strides[0])
    out, where = view_and_places(order, kept, len(x.dims))
    sizes, (read, written) = collapse(
        [extent.size for extent in order],
        [[extent.strides[0] for extent in order], [where[id(extent)] for extent in order]],
    )
    inner = gone if kind == ARGMAX else sorted(gone, key=lambda extent: -extent.strides[0])
    gone_sizes, (gone_read,) = collapse([extent.size for extent in inner], [[extent.strides[0] for extent in inner]])
    neighbours, run = 0, 1
    if sizes and read[-1] == 1 and written[-1] == 1:
        run = sizes.pop()
        read.pop(), written.pop()
    elif gone_sizes and gone_read[-1] == 1 and kind != ARGMAX:
        neighbours = gone_sizes.pop()
        gone_read.pop()
    # All extents in the order of memory, which decides whether a pointwise group can compute this sum.
    whole = sorted((*kept, *gone), key=lambda extent: -extent.strides[0])
    fields = {
        "kind": kind,
        "order": tuple(extent.size for extent in whole),
        "read": [extent.strides[0] for extent in whole],
        "written": [where.get(id(extent), 0) for extent in whole],
        "run": run,
        "together": neighbours,
        "io": offsets(sizes, read),
        "oo": offsets(sizes, written),
        "ro": offsets(gone_sizes, gone_read),
    }
    return draft.add(RED, out, [x], fields)
