"""Lowering of products of matrices to instructions, depending on the position of the lanes.

LIN: activations, with lanes, by weights, without lanes. WGRAD: a sum over lanes, as in gradients of weights. BMM: the batch dimension has
lanes, and the product is computed lane by lane. GEN: all others, number by number.
"""

from typing import Any

import numpy as np

from thousandfold.codes import BMM, GEN, LIN, WGRAD
from thousandfold.program.atoms import Extent, Full, View, align, collapse, offsets, offsets_of
from thousandfold.program.draft import AtenCall, ProgramDraft, lowers, number_of, offsets_in, view_and_places

LONGEST = 4096  # largest number of runs of a WGRAD


@lowers("bmm", "mm", "baddbmm", "addmm")
def lower_matmul(draft: ProgramDraft, call: AtenCall) -> Any:
    has_bias = call.name in ("baddbmm", "addmm")
    bias, a, b = call.args[:3] if has_bias else (None, *call.args[:2])
    beta, alpha = call.kwargs.get("beta", 1), call.kwargs.get("alpha", 1)
    if bias is None and any(isinstance(x, Full) and x.number == 0 for x in (a, b)):
        return Full(0.0, call.shape)
    a, b = draft.solid(a), draft.solid(b)
    flat = call.name in ("mm", "addmm")
    if flat:
        a, b = (x.with_dims(((), *x.dims)) for x in (a, b))
    if has_bias and (beta, alpha) == (1, 1):
        out = product(draft, a, b, bias)
    else:
        out = product(draft, a, b, None)
        out = draft.pointwise("MUL", [out, float(alpha)], out.shape) if alpha != 1 else out
        if has_bias and beta != 0:
            scaled = draft.pointwise("MUL", [number_of(bias), float(beta)], bias.shape)
            out = draft.pointwise("ADD", [out, scaled], out.shape)
    return out.with_dims(out.dims[1:]) if flat else out


class Sides:
    """The extents of a product C (B, M, N) = A (B, M, K) B (B, K, N). Extents of the batch and of the sum have strides in A and B; those of
    rows and columns have a stride in A or B."""

    def __init__(self, a: View, b: View) -> None:
        self.a, self.b = a, b
        side = lambda x, dim, size: View(x.value, 0, (x.dims[dim],))  # noqa: E731
        count, inner = a.shape[0], a.shape[2]
        self.batch = align([side(a, 0, count), side(b, 0, count)], (count,))[0]
        self.summed = align([side(a, 2, inner), side(b, 1, inner)], (inner,))[0]
        self.rows = [Extent(1, atom.size, atom.lane, (atom.stride,)) for atom in a.dims[1]]
        self.columns = [Extent(2, atom.size, atom.lane, (atom.stride,)) for atom in b.dims[2]]

    def order(self, length: int) -> list[Extent]:
        """Return the order of the product's extents in memory."""
        extents = [*self.batch, *self.rows, *self.columns]
        if not has_lane(extents):
            return extents
        batch = [extent for extent in self.batch if not extent.lane]
        rows, columns = (
            sorted((extent for extent in side if not extent.lane), key=lambda extent: -extent.strides[0])
            for side in (self.rows, self.columns)
        )
        sizes = self.a.shape[1], self.b.shape[2]
        tokens_last = has_lane(self.columns) or (has_lane(self.batch) and sizes[1] == length != sizes[0])
        middle = rows + columns if tokens_last else columns + rows
        return batch + middle + [extent for extent in extents if extent.lane]


def has_lane(extents: list[Extent]) -> bool:
    return any(extent.lane for extent in extents)


def product(draft: ProgramDraft, a: View, b: View, bias: Any) -> View:
    """Return (B, M, K) by (B, K, N), plus a bias (B or 1, M or 1, N)."""
    sides = Sides(a, b)
    view, where = view_and_places(sides.order(draft.length), [*sides.batch, *sides.rows, *sides.columns], 3)
    kind, fields = kind_of(sides, where)
    if kind == BMM and bias is None and a.shape[2] == 1:  # fused with its neighbours
        return draft.pointwise("MUL", [a, b], view.shape, view)
    joins = kind == LIN and not fields["swapped"] and isinstance(bias, View)
    if joins and len(bias.dims) < 3:
        bias = bias.with_dims((*[()] * (3 - len(bias.dims)), *bias.dims))  # a bias (N,) of a product without a batch
    if joins and not bias.dims[0] and not bias.dims[1] and bias.shape[2] == view.shape[2]:
        extents = align([View(bias.value, 0, (bias.dims[2],)), View(b.value, 0, (b.dims[2],))], (b.shape[2],))[0]
        return draft.add(kind, view, [a, b, bias], fields | {"biased": 1, "ob": offsets_of(extents, 0)})
    draft.add(kind, view, [b, a] if fields.get("swapped") else [a, b], fields)
    return view if bias is None else draft.pointwise("ADD", [view, number_of(bias)], view.shape)


def kind_of(sides: Sides, where: dict[int, int]) -> tuple[int, dict[str, Any]]:
    for kind, write in ((BMM, lane_by_lane), (LIN, linear), (WGRAD, over_lanes)):
        fields = write(sides, where)
        if fields is not None:
            return kind, fields
    return GEN, tables(sides, sides.batch, where)


def tables(sides: Sides, batch: list[Extent], where: dict[int, int]) -> dict[str, Any]:
    """Return the offsets in A, B and C of batch, rows, columns and terms of the sum."""
    return {
        "oa": offsets_of(batch, 0),
        "ob": offsets_of(batch, 1),
        "oc": offsets_in(where, batch),
        "ma": offsets_of(sides.rows, 0),
        "mc": offsets_in(where, sides.rows),
        "nb": offsets_of(sides.columns, 0),
        "nc": offsets_in(where, sides.columns),
        "ka": offsets_of(sides.summed, 0),
        "kb": offsets_of(sides.summed, 1),
    }


def lane_by_lane(sides: Sides, where: dict[int, int]) -> dict[str, Any] | None:
    """Return the tables of BMM, or None if the batch has no lanes next to each other."""
    lanes = [extent for extent in sides.batch if extent.lane]
    if len(lanes) != 1 or has_lane([*sides.rows, *sides.columns, *sides.summed]):
        return None
    if not set(lanes[0].strides) <= {0, 1} or not any(lanes[0].strides):
        return None
    others = [extent for extent in sides.batch if not extent.lane]
    strides = dict(zip(("la", "lb"), lanes[0].strides))
    return tables(sides, others, where) | strides | {"lanes": lanes[0].size}


def linear(sides: Sides, where: dict[int, int]) -> dict[str, Any] | None:
    """Return the tables of X, the side with lanes, by W, the other side. `swapped`: X is the second factor."""
    swapped = has_lane(sides.columns)
    if has_lane(sides.rows) == swapped or has_lane([*sides.batch, *sides.summed]):
        return None
    extents = sorted(sides.columns if swapped else sides.rows, key=lambda extent: -where[id(extent)])
    strides = [extent.strides[0] for extent in extents], [where[id(extent)] for extent in extents]
    sizes, (read, written) = collapse([extent.size for extent in extents], strides)
    if not sizes or read[-1] != 1 or written[-1] != 1:
        return None
    run = sizes.pop()
    read.pop(), written.pop()
    runs_x, runs_c = offsets(sizes, read), offsets(sizes, written)
    at = tables(sides, sides.batch, where)
    batch_x, batch_w = (at["ob"], at["oa"]) if swapped else (at["oa"], at["ob"])
    combine = lambda outer, inner: (outer[:, None] + inner).reshape(-1)  # noqa: E731
    return {
        "swapped": swapped,
        "kx": at["kb" if swapped else "ka"],
        "kw": at["ka" if swapped else "kb"],
        "nw": at["ma" if swapped else "nb"],
        "nc": at["mc" if swapped else "nc"],
        "ob": 0 * at["mc" if swapped else "nc"],
        "rx": combine(batch_x, runs_x),
        "rw": combine(batch_w, 0 * runs_x),
        "rc": combine(at["oc"], runs_c),
        "run": run,
    }


def over_lanes(sides: Sides, where: dict[int, int]) -> dict[str, Any] | None:
    """Return the tables of WGRAD, or None if the sum is not over lanes."""
    if sides.a.shape[0] != 1 or not has_lane(sides.summed) or has_lane([*sides.rows, *sides.columns]):
        return None
    extents = sorted(sides.summed, key=lambda extent: -extent.strides[0])
    strides = [extent.strides[0] for extent in extents], [extent.strides[1] for extent in extents]
    sizes, (first, second) = collapse([extent.size for extent in extents], strides)
    if not sizes or (first[-1], second[-1]) != (1, 1) or np.prod(sizes) > LONGEST:
        return None
    # The tile writes contiguous columns of C.
    at = tables(sides, sides.batch, where)
    if list(at["nc"]) != list(range(len(at["nc"]))):
        return None
    run = sizes.pop()
    first.pop(), second.pop()
    fields = {name: at[name] for name in ("ma", "nb", "mc")}
    return fields | {"ka": offsets(sizes, first), "kb": offsets(sizes, second), "run": run}
