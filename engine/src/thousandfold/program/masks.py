"""Lowering of dropout masks, which equal those of `member_functions.py`."""

from typing import Any

from thousandfold.codes import MASK
from thousandfold.program.atoms import align, flat
from thousandfold.program.calls import AtenCall, lowers
from thousandfold.program.draft import ProgramDraft, ProgramNode, laid, lanes_last, offsets_in, places


@lowers("dropout_mask")
def mask(draft: ProgramDraft, call: AtenCall) -> Any:
    """Lower a mask in the layout of its tensor. Elements are counted in logical order."""
    x, site, threshold, scale = call.args
    x = draft.solid(x)
    extents = flat(align([x], x.shape))
    order = lanes_last(extents, lambda extent: -extent.strides[0])
    where, size = places(order)
    logical = places(extents)[0]
    out = laid(order, extents, len(x.dims))
    rest, inner = order[:-1], order[-1:]
    what = {
        "site": site,
        "threshold": threshold,
        "scale": scale,
        "size": size,
        "run": inner[0].size if inner else 1,
        "stride": logical[id(inner[0])] if inner else 1,
        "from": offsets_in(logical, rest),
        "into": offsets_in(where, rest),
    }
    draft.nodes.append(ProgramNode(MASK, out, [], what))
    return out
