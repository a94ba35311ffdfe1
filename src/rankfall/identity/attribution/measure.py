"""Share of each token's state that comes from each token of the input, layer by layer, by several methods whose ranks are compared.

Jacobian blocks are exact, in float64: all D x D entries of d e_j / d x_i, where x_i is the input of the first block (after embedding,
position and norm). The other methods are Jacobian times input, the gradient of the summed features, attention weights of the layer,
rollout, norms of weighted values (of the attention, skip and norm of each layer, multiplied over layers, without the MLP), and the
effect of replacing a token by the mean. Sentinels count as tokens.
"""

from typing import Any

import torch

from rankfall.identity.attribution.layers import ABLATION, compute_layers, ratio_rows, share_rows
from rankfall.identity.cells import cell_views
from rankfall.identity.jacobian import MEMORY, every_block
from rankfall.identity.shares import ablation
from rankfall.measure.context import Context
from rankfall.measure.shared import in_float64

COST = {"seconds": 1.0, "megabytes": 300.0}
PARTS_OF_ATTENTION = ("weights", "contexts", "maps")
NO_PARTS = "weights, heads and values are not all there, or are not all that the layer does"


@torch.no_grad()
def attribution(context: Context, *, samples: int = 2) -> list[dict[str, Any]]:
    """Measure the first test samples."""
    network, inputs = in_float64(context, samples)
    x = network.lift(inputs)  # (1, B, T, D)
    squares = every_block(lambda states: list(network.layers(states))[1:], x, MEMORY)  # each (L, 1, B, T, T)
    ablated = ablation(lambda states: list(network.layers(states))[1:], x).square()
    tokens = torch.arange(x.shape[2], device=x.device).expand(x.shape[1], -1)
    parts = not network.is_wide and all(
        hasattr(block.attention, name) for block in network.blocks for name in PARTS_OF_ATTENTION
    )
    matrices, missing, ratios = compute_layers(list(cell_views(network, inputs)) if parts else [])
    rows = []
    for layer in range(len(network.blocks)):
        by_method = {name: value[layer] for name, value in squares.items()}
        by_method[ABLATION] = ablated[layer]
        lacking = dict.fromkeys(("attention", "rollout", "norms"), NO_PARTS)
        if parts:
            by_method |= {name: value.square()[None] for name, value in matrices[layer].items()}
            lacking = missing[layer]
            rows += [{"layer": layer + 1} | row for row in ratio_rows(ratios[layer], lacking)]
        rows += [{"layer": layer + 1} | row for row in share_rows(by_method, tokens, lacking)]
    return rows
