"""Masks of dropout, as `train/dropout.py` draws them."""

from typing import Any

from rankfall.train.machine.codes import MASK
from rankfall.train.machine.program.atoms import flat, offsets, together
from rankfall.train.machine.program.calls import Call, lowers
from rankfall.train.machine.program.draft import Draft, Node, laid, lanes_last, places


@lowers("dropout_mask")
def mask(draft: Draft, call: Call) -> Any:
    """In the layout of what it is for; elements are counted in their logical order."""
    x, site, threshold, scale = call.args
    x = draft.solid(x)
    steps = flat(together([x], x.shape))
    order = lanes_last(steps, lambda step: -step.strides[0])
    where, size = places(order)
    logical = places(steps)[0]
    out = laid(order, steps, len(x.dims))
    inner = order[-1:]
    rest = order[:-1]
    sizes = [step.size for step in rest]
    what = {
        "site": site,
        "threshold": threshold,
        "scale": scale,
        "size": size,
        "run": inner[0].size if inner else 1,
        "stride": logical[id(inner[0])] if inner else 1,
        "from": offsets(sizes, [logical[id(step)] for step in rest]),
        "into": offsets(sizes, [where[id(step)] for step in rest]),
    }
    draft.nodes.append(Node(MASK, out, [], what))
    return out
