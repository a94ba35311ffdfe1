"""Measure the spread of tokens |X - 1 mean(X)| by layer of attention with a layer norm and nothing else, for three masks.

It is measured in float32, in float64, and without a rounding floor (centred propagation). The spread is absolute, as in the claim. A norm
restores the length of every token, and so enlarges the rounding errors of equal tokens.
"""

import torch

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.draws import draw, log10, spread
from studies.claims.norms_prevent_collapse.names import QUANTITY
from studies.claims.parts import MASKS
from studies.claims.untrained import make, spread_without_rounding

BUILDS = {"mask": ["none", "causal", "local"], "norm": ["layer"]}
NAME = "norms_prevent_collapse"


def norms_prevent_collapse(
    context: Context, *, depth: int = 24, tokens: int = 24, width: int = 64, heads: int = 4, seeds: int = 5
) -> Evidence:
    members = list(range(seeds))
    x = draw(members, tokens, width, name=NAME).unsqueeze(1)  # (K, 1, T, D)
    for sees, mask in MASKS.items():
        for dtype in (torch.float32, torch.float64):
            network = make(members, tokens, dtype, mask=mask, norm="layer", depth=depth, heads=heads, width=width)
            states = list(network.layers(x.to(dtype)))
            line = f"{sees}, {str(dtype).removeprefix('torch.')}"
            for layer, state in enumerate(states):
                for seed, value in zip(members, spread(state.double())[:, 0].tolist(), strict=True):
                    yield row(NAME, QUANTITY, line, layer, seed, log10(value), "the tokens are equal")
        for layer, logs in enumerate(spread_without_rounding(network, x)):
            line = f"{sees}, without rounding"
            for seed, value in zip(members, logs.tolist(), strict=True):
                yield row(NAME, QUANTITY, line, layer, seed, value)
