"""Influence of each position on the last token of a cell: shares of the exact norms of blocks d e_n / d x_i, by layer.

The cells are causal networks, at initialisation and trained. They show how training changes the influence of position that `influence`
derives at initialisation.
"""

import copy

import torch

from rankfall.identity.jacobian import JACOBIAN, blocks_of
from rankfall.identity.shares import shares
from rankfall.measure.context import Context, Rows
from rankfall.measure.member import each_network
from rankfall.nets.network import Network

TABLE = "cell_influence"
REQUIRES = [
    (
        {"mask": "causal"},
        "the last token of a network without a causal mask is like any other; choose cells with `mask: causal`",
    )
]
LIMITS = {"samples": (1, None)}
NONE = "nothing reaches the last token, or so little that it is beyond the range of float64"


def cell_influence(context: Context, *, samples: int = 4) -> Rows:
    """Measure the first test samples."""
    network = copy.deepcopy(
        context.network
    ).double()  # all members: their inputs are lifted together, then each runs alone
    inputs = context.data.test.inputs[:, :samples]
    inputs = inputs.double() if inputs.is_floating_point() else inputs
    with torch.no_grad():
        x = network.lift(inputs)  # (K, B, T, D)
    last = torch.tensor([x.shape[2] - 1])
    rows: Rows = []
    for member, alone in enumerate(each_network(network)):
        made = []
        for sample in range(x.shape[1]):

            def layers(states: torch.Tensor, alone: Network = alone) -> list[torch.Tensor]:
                return [state[0, 0] for state in list(alone.layers(states[None, None]))[1:]]

            rng = context.stream("cell_influence", member=member)  # nothing is drawn: blocks are exact
            made.append(shares(blocks_of(layers, x[member, sample], last, None, rng)[JACOBIAN][0, :, 0].sqrt()))
        found = torch.stack(made)  # (B, L, T); NaN where a layer's influences are too small to be squared
        mean, deviation = found.mean(0), found.std(0) if len(made) > 1 else None
        for layer in range(found.shape[1]):
            for place in range(found.shape[2]):
                known = bool(mean[layer, place].isfinite())
                spread = None if deviation is None or not known else float(deviation[layer, place])
                about = {"member": member, "layer": layer + 1, "place": place + 1, "places": found.shape[2]}
                share = float(mean[layer, place]) if known else None
                numbers = {"share": share, "deviation": spread, "samples": len(made)}
                rows.append(about | numbers | {"value_reason": "" if known else NONE})
    return rows
