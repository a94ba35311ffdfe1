"""Lowering of reads and writes at indices that depend on data.

Such an index is clamped to its table before use, so that no memory outside is read. Indices outside their tables are counted, and then the
engine ends the job, as autograd does.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from thousandfold.codes import GATHER, SCATTER, SUM
from thousandfold.program.atoms import (
    Atom,
    Extent,
    Full,
    OneHot,
    Shape,
    Unsupported,
    Value,
    View,
    align,
    contiguous,
    flat,
    offsets,
    offsets_of,
)
from thousandfold.program.draft import (
    AtenCall,
    ProgramDraft,
    lanes_last,
    lowers,
    number_of,
    offsets_in,
    stored_number,
    view_and_places,
)
from thousandfold.program.parts import drop_dim, resize
from thousandfold.program.sums import reduce

NOWHERE = np.zeros(1, np.int64)


def inside(draft: ProgramDraft, index: Any, size: int) -> View:
    """Clamp an index to a table of `size` rows, and count the indices outside."""
    if isinstance(index, Full):
        if not 0 <= index.number < size:
            raise Unsupported(f"a constant index {index.number:.0f} of {size}")
        return draft.solid(index)
    if (numbers := draft.numbers_of(index)) is not None:
        if numbers.min() < 0 or numbers.max() >= size:
            raise Unsupported(f"constant indices from {numbers.min():.0f} to {numbers.max():.0f} of {size}")
        return index
    shape = index.shape
    kept = draft.pointwise("MINI", [draft.pointwise("MAXI", [index, 0.0], shape), float(size - 1)], shape)
    away = draft.pointwise("NE", [index, kept], shape)
    draft.strayed.append(reduce(draft, away, set(range(len(shape))), SUM))
    return kept


def from_either_end(draft: ProgramDraft, index: Any, size: int) -> Any:
    """Convert negative indices, which count from the end."""
    if isinstance(index, Full):
        return Full(index.number + size * (index.number < 0), index.shape)
    if (numbers := draft.numbers_of(index)) is not None:
        positive = np.where(numbers < 0, numbers + size, numbers).reshape(index.shape)
        return draft.constant(torch.from_numpy(positive)) if numbers.min() < 0 else index
    shape = index.shape
    negative, other = draft.pointwise("LT", [index, 0.0], shape), draft.pointwise("ADD", [index, float(size)], shape)
    return draft.pointwise("WHERE", [negative, other, index], shape)


@lowers("index")
def lower_index(draft: ProgramDraft, call: AtenCall) -> Any:
    x, indices = call.args[0], call.args[1]
    at = [i for i, index in enumerate(indices) if index is not None]
    if isinstance(x, View) and (pair := one_of_each_row(draft, indices, x.shape)):
        picked = gather_along(draft, x, *pair, resize(x.shape, pair[0], 1))
        return picked.with_dims(atoms for i, atoms in enumerate(picked.dims) if i != pair[0])
    if len(at) != 1:
        raise Unsupported("an index in several dimensions")
    return pick_rows(draft, x, at[0], from_either_end(draft, indices[at[0]], x.shape[at[0]]), call)


def one_of_each_row(draft: ProgramDraft, indices: Sequence[Any], shape: Shape) -> tuple[int, View] | None:
    """Return the dimension of `index` in x[range(n), index], and `index` with the dimensions of x, or None for other indices."""
    at = [i for i, index in enumerate(indices) if index is not None]
    if len(at) != 2 or at[1] != at[0] + 1 or not shape[at[0] : at[1]] == indices[at[0]].shape == indices[at[1]].shape:
        return None
    first = indices[at[0]]
    numbers = draft.numbers_of(first) if isinstance(first, View) else np.full(first.shape, first.number)
    if numbers is None or not np.array_equal(numbers, np.arange(shape[at[0]])):
        return None
    index = draft.solid(from_either_end(draft, indices[at[1]], shape[at[1]]))
    return at[1], index.with_dims(index.dims[0] if i == at[0] else () for i in range(len(shape)))


@lowers("index_select")
def lower_index_select(draft: ProgramDraft, call: AtenCall) -> Any:
    return pick_rows(draft, call.args[0], call.args[1] % len(call.shape), call.args[2], call)


@lowers("embedding")
def lower_embedding(draft: ProgramDraft, call: AtenCall) -> Any:
    return pick_rows(draft, call.args[0], 0, call.args[1], call)


def one_stride(x: View, dim: int) -> int:
    if len(x.dims[dim]) > 1:
        raise Unsupported("an index of a dimension that is made of several")
    return x.dims[dim][0].stride if x.dims[dim] else 0


def pick_rows(draft: ProgramDraft, x: Any, dim: int, index: Any, call: AtenCall) -> Any:
    """Return out with out[..., j, ...] = x[..., index[j], ...]."""
    if isinstance(x, Full):
        return Full(x.number, call.shape)
    index = inside(draft, index, x.shape[dim])
    stride = one_stride(x, dim)
    before, after = x.dims[:dim], x.dims[dim + 1 :]
    dims = [*before, *index.dims, *after]
    first, last = len(before), len(before) + len(index.dims)
    extents = [[Extent(i, a.size, a.lane, (a.stride,)) for a in atoms] for i, atoms in enumerate(dims)]
    of_index, of_rows, flat_extents = (
        flat(extents[first:last]),
        flat([*extents[:first], *extents[last:]]),
        flat(extents),
    )
    lanes = [extent for extent in of_rows + of_index if extent.lane]
    others = [extent for extent in [*of_rows, *reversed(of_index)] if not extent.lane]
    order = [*others, *lanes] if lanes else flat_extents
    out, where = view_and_places(order, flat_extents, len(dims))
    fields = {
        "stride": stride,
        "io": offsets_of(of_index, 0),
        "xo": np.zeros(math.prod(extent.size for extent in of_index), np.int64),
        "oo": offsets_in(where, of_index),
        "xd": offsets_of(of_rows, 0),
        "od": offsets_in(where, of_rows),
    }
    return draft.add(GATHER, out, [x, index], fields)


@lowers("gather")
def lower_gather(draft: ProgramDraft, call: AtenCall) -> Any:
    return gather_along(draft, call.args[0], call.args[1] % len(call.shape), call.args[2], call.shape)


def gather_along(draft: ProgramDraft, x: Any, dim: int, index: Any, shape: Shape) -> Any:
    """Return out with out[i, j] = x[i, index[i, j]]."""
    if isinstance(x, Full):
        return Full(x.number, shape)
    index = inside(draft, index, x.shape[dim])
    stride = one_stride(x, dim)
    kept = drop_dim(x, dim)
    for i, size in enumerate(shape):
        if i != dim and kept.shape[i] != size:
            raise Unsupported("gather from a part of a tensor")
    extents = flat(align([index, kept], shape))
    lanes = any(extent.lane for extent in extents)
    order = lanes_last(reversed(extents)) if lanes else extents
    out, where = view_and_places(order, extents, len(shape))
    tables = {"io": offsets_of(extents, 0), "xo": offsets_of(extents, 1), "oo": offsets_in(where, extents)}
    fields = {"stride": stride, **tables, "xd": NOWHERE, "od": NOWHERE}
    return draft.add(GATHER, out, [x, index], fields)


@lowers("index_put")
def lower_index_put(draft: ProgramDraft, call: AtenCall) -> Any:
    """Add v to zeros at indices of one dimension, or write a number where a mask of the first dimensions is true."""
    x, indices, v = call.args[:3]
    at = [i for i, index in enumerate(indices) if index is not None]
    if torch.bool in call.dtypes[1:] and len(indices) == 1 and math.prod(v.shape) == 1:
        mask = draft.solid(indices[0])
        others = ((),) * (len(call.shape) - len(mask.dims))
        v = number_of(v)
        return draft.pointwise(
            "WHERE",
            [mask.with_dims((*mask.dims, *others)), v.with_dims(()) if isinstance(v, View) else v, number_of(x)],
            call.shape,
        )
    adds = bool(call.arg(3, False)) and isinstance(x, Full) and x.number == 0
    if (
        adds
        and (pair := one_of_each_row(draft, indices, call.shape))
        and v.shape == (*call.shape[: pair[0]], *call.shape[pair[0] + 1 :])
    ):
        dim, index = pair
        v = draft.solid(v)
        number = v.with_dims((*v.dims[:dim], (), *v.dims[dim:]))
        return one_hot(draft, dim, inside(draft, index, call.shape[dim]), number, call.shape)
    if len(at) != 1 or not adds:
        raise Unsupported("index_put but into zeros, adding up, at one dimension")
    if not math.prod(indices[at[0]].shape):
        return x
    dim, shape = at[0], call.shape
    index = inside(draft, from_either_end(draft, indices[dim], shape[dim]), shape[dim])
    v = draft.solid(v)
    out = contiguous(Value(math.prod(shape)), shape)
    count = len(index.dims)
    full = (*shape[:dim], *index.shape, *shape[dim + 1 :])
    spread = [tuple(Atom(s.size, s.strides[0], s.lane) for s in extents) for extents in align([v], full)]
    at_index = flat(align([index, View(v.value, 0, tuple(spread[dim : dim + count]))], index.shape))
    row_dims = tuple(spread[:dim] + spread[dim + count :])
    rest_shape = (*shape[:dim], *shape[dim + 1 :])
    of_rows = flat(
        align([View(out.value, 0, out.dims[:dim] + out.dims[dim + 1 :]), View(v.value, 0, row_dims)], rest_shape)
    )
    fields = {
        "adds": 1,
        "stride": math.prod(shape[dim + 1 :]),
        "zeros": math.prod(shape),
        "io": offsets_of(at_index, 0),
        "xo": np.zeros(math.prod(extent.size for extent in at_index), np.int64),
        "vo": offsets_of(at_index, 1),
        "xd": offsets_of(of_rows, 0),
        "vd": offsets_of(of_rows, 1),
    }
    return draft.add(SCATTER, out, [index, v], fields)


def one_hot(draft: ProgramDraft, dim: int, index: View, number: Any, shape: Shape) -> OneHot:
    """Return a tensor with a number at the index in each row along a dimension."""
    classes = draft.constant(torch.arange(shape[dim]).reshape([-1 if i == dim else 1 for i in range(len(shape))]))
    hits = draft.pointwise("EQ", [number_of(classes), index], shape)
    x = hits if number == 1 else draft.pointwise("WHERE", [hits, number, 0.0], shape)  # it may be infinite
    return OneHot(x.value, x.offset, x.dims, dim, number)


@lowers("scatter", "scatter_add")
def lower_scatter(draft: ProgramDraft, call: AtenCall) -> Any:
    """Write or add v to x at [i, index[i, j]]."""
    x, _, index, v = call.args[:4]
    if call.kwargs.get("reduce"):
        raise Unsupported("scatter that reduces")
    if not math.prod(index.shape):
        return x
    if not isinstance(v, View | Full):
        v = stored_number(v, call.value.dtype)
    if isinstance(x, Full) and x.number == 0:
        return scatter_into_zeros(draft, call, v)
    if call.name == "scatter_add":
        return draft.pointwise("ADD", [number_of(x), scatter_into_zeros(draft, call, v)], call.shape)
    hits = scatter_into_zeros(draft, call, Full(1.0, tuple(index.shape)))
    written = scatter_into_zeros(draft, call, v) if isinstance(v, View) else float(number_of(v))
    return draft.pointwise("WHERE", [hits, written, number_of(x)], call.shape)


def scatter_into_zeros(draft: ProgramDraft, call: AtenCall, v: Any) -> Any:
    """Return zeros with v written or added at [i, index[i, j]]."""
    dim, index, shape = call.args[1] % len(call.shape), call.args[2], call.shape
    index = inside(draft, index, shape[dim])
    if isinstance(v, Full | float | int) and index.shape == resize(shape, dim, 1):
        return one_hot(draft, dim, index, float(number_of(v)), shape)
    if not isinstance(v, View):
        v = draft.solid(
            v if isinstance(v, Full) and v.shape == index.shape else Full(getattr(v, "number", v), index.shape)
        )
    if v.shape != index.shape:
        raise Unsupported("scatter of a part of a tensor")
    extents = align([index, v], index.shape)
    # A dimension of the result has the atoms of the index if the index covers it, else one atom.
    dims: list[list[Extent]] = []
    for i, size in enumerate(shape):
        whole = i != dim and math.prod(extent.size for extent in extents[i]) == size
        parts = [(extent.size, extent.lane) for extent in extents[i]] if whole else [(size, False)] * (size > 1)
        dims.append([Extent(i, part, lane, ()) for part, lane in parts])
    order = lanes_last(reversed(flat(dims)))
    out, where = view_and_places(order, flat(dims), len(shape))
    into = []  # stride in the result for each extent of the index
    for i, indexed in enumerate(extents):
        for k, _ in enumerate(indexed):
            if i == dim or not dims[i]:
                into.append(0)
            elif len(dims[i]) == len(indexed):
                into.append(where[id(dims[i][k])])
            else:
                into.append(where[id(dims[i][0])] * math.prod(extent.size for extent in indexed[k + 1 :]))
    flat_extents = flat(extents)
    fields = {
        "adds": int(call.name == "scatter_add"),
        "stride": where[id(dims[dim][0])] if dims[dim] else 0,
        "zeros": math.prod(shape),
        "io": offsets_of(flat_extents, 0),
        "xo": offsets([extent.size for extent in flat_extents], into),
        "vo": offsets_of(flat_extents, 1),
    }
    return draft.add(SCATTER, out, [index, v], fields | {"xd": NOWHERE, "vd": NOWHERE})
