"""Measure the weight outside the first token in the last row of the product of all causal attention matrices, without skip connections.

Its rate is compared with the published bound, (1 - (j - 1) e) per layer at j = 2, with e the smallest weight of any layer; with the largest
diagonal entry after the first, which governs a product of triangular matrices; and with the rate of the same product with half of each
layer a skip connection.
"""

import math
from typing import Any

import torch

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.causal_products.names import LEFT, RATE
from studies.claims.draws import draw
from studies.claims.untrained import make

BUILDS = {"mask": ["causal", "local"], "norm": ["layer"]}
NAME = "causal_products"
WINDOW = {"name": "local", "window": 3, "causal": True}  # four tokens: three earlier ones and itself
NETWORKS: dict[str, dict[str, Any]] = {
    "weak scores": {"init": {"name": "normal", "deviation": 0.02}},
    "strong scores": {"init": {"name": "normal", "deviation": 0.25}},
    "weak scores, window of 4": {"init": {"name": "normal", "deviation": 0.02}, "mask": WINDOW},
}


def causal_products(
    context: Context, *, depth: int = 96, tokens: int = 16, width: int = 32, seeds: int = 5
) -> Evidence:
    for seed in range(seeds):
        x = draw([seed], 1, tokens, width, name=NAME)
        for number, (line, parts) in enumerate(NETWORKS.items()):
            fields: dict[str, Any] = {"mask": "causal", "norm": "layer", "depth": depth, "width": width} | parts
            network = make([seed], tokens, **fields)
            state = network.first_state(x)
            product, skipped = torch.eye(tokens, dtype=x.dtype), torch.eye(tokens, dtype=x.dtype)
            least, largest = 1.0, 0.0
            outside, left_skipped = [], []
            for block in network.blocks:
                weights = block.attention.weights(state)[0, 0, 0]  # (T, T)
                product = weights @ product
                skipped = (weights + torch.eye(tokens, dtype=x.dtype)) / 2 @ skipped
                least = min(least, float(weights[weights > 0].min()))
                largest = max(largest, float(weights.diagonal()[1:].max()))
                # Sums of the weight outside, not one minus the first: small numbers keep their digits.
                outside.append(math.log10(float(product[-1, 1:].sum())))
                left_skipped.append(math.log10(float(skipped[-1, 1:].sum())))
                state = block(state)
            for layer, (plain, half) in enumerate(zip(outside, left_skipped, strict=True), 1):
                yield row(NAME, LEFT, line, layer, seed, plain)
                yield row(NAME, LEFT, f"{line}, half of it skipped", layer, seed, half)
            middle = depth // 2
            for kind, value in (
                ("measured", (outside[-1] - outside[middle - 1]) / (depth - middle)),
                ("measured, half of it skipped", (left_skipped[-1] - left_skipped[middle - 1]) / (depth - middle)),
                ("published bound", math.log10(1 - least)),
                ("largest diagonal entry", math.log10(largest)),
            ):
                yield row(NAME, RATE, kind, number, seed, value)
