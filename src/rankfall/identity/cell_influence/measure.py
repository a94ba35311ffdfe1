"""Influence of each position on the last token of a cell: shares of the exact norms of blocks d e_n / d x_i, by layer.

The cells are causal networks, at initialisation and trained. They show how training changes the influence of position that `influence`
derives at initialisation.
"""

import torch
from torch import Tensor

from rankfall.identity.jacobian import JACOBIAN, blocks_of
from rankfall.identity.shares import shares
from rankfall.measure.context import Context, Rows
from rankfall.measure.shared import in_float64

REQUIRES = [
    (
        {"mask": "causal"},
        "the last token of a network without a causal mask is like any other; choose cells with `mask: causal`",
    )
]
NONE = "nothing reaches the last token, or so little that it is beyond the range of float64"


def cell_influence(context: Context, *, samples: int = 4) -> Rows:
    """Measure the first test samples."""
    network, inputs = in_float64(context, samples)
    with torch.no_grad():
        states = network.lift(inputs)[0]  # (B, T, D)
    last = torch.tensor([states.shape[1] - 1])

    def layers(state: Tensor) -> list[Tensor]:
        return [after[0, 0] for after in list(network.layers(state[None, None]))[1:]]

    rng = context.stream("cell_influence", member=0)  # nothing is drawn: blocks are exact
    blocks = [blocks_of(layers, state, last, None, rng)[JACOBIAN][0, :, 0] for state in states]
    # (B, L, T); NaN where contributions are too small to be squared.
    by_sample = torch.stack([shares(squares.sqrt()) for squares in blocks])
    mean, deviation = by_sample.mean(0), by_sample.std(0) if len(by_sample) > 1 else None
    rows: Rows = []
    for layer in range(by_sample.shape[1]):
        for place in range(by_sample.shape[2]):
            known = bool(mean[layer, place].isfinite())
            spread = None if deviation is None or not known else float(deviation[layer, place])
            about = {"layer": layer + 1, "place": place + 1, "places": by_sample.shape[2]}
            share = float(mean[layer, place]) if known else None
            numbers = {"share": share, "deviation": spread, "samples": len(by_sample)}
            rows.append(about | numbers | {"value_reason": "" if known else NONE})
    return rows
