"""Recover tokens from states, one after another.

With the right tokens before it, each word of a vocabulary is tried as the next one, and the word whose state is nearest to the observed
state is chosen. The observed state comes from a separate pass, as in practice: a pass over another number of texts may round differently.
Words whose states are equal to the last bit share the answer. Causal attention alone, with small scores, averages: what a word adds to the
last of n tokens falls by 1 / n per layer.
"""

import math
from typing import Any

import torch
from torch import Tensor

from rankfall import Context, Evidence, random_stream
from rankfall import evidence_row as row
from studies.claims.draws import draw
from studies.claims.invertible_states.names import FOUND, NEAREST
from studies.claims.parts import PRE_NORM
from studies.claims.untrained import make

COST = {"seconds": 13}
BUILDS = {
    "mask": ["causal"],
    "mlp": ["gelu", "none"],
    "norm": ["layer", "none"],
    "position": ["rope", "none"],
    "residual": ["add", "none"],
}
NAME = "invertible_states"
NETWORKS: dict[str, dict[str, Any]] = {
    "pre-norm decoder": PRE_NORM | {"mlp": "gelu", "position": "rope"},
    "post-norm decoder": {"residual": "add", "norm": "layer", "mlp": "gelu", "position": "rope"},
    "attention and MLP without skips": {"norm": "layer", "mlp": "gelu", "mlp_residual": "none", "position": "rope"},
    "attention alone": {},
}
LEAST = 1e-14  # distance over the states' size, to which rounding accumulates over the layers
FORMATS = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16}


def invertible_states(
    context: Context,
    *,
    depth: int = 24,
    tokens: int = 16,
    vocabulary: int = 64,
    width: int = 64,
    heads: int = 4,
    seeds: int = 5,
) -> Evidence:
    for seed in range(seeds):
        words = draw([seed], vocabulary, width, name=NAME)[0]  # (V, D)
        text = torch.from_numpy(random_stream(seed, "claims", NAME, "text").integers(vocabulary, size=tokens))
        places = [tokens // 4 - 1, tokens // 2 - 1, tokens - 1]
        for line, parts in NETWORKS.items():
            fields = {"mask": "causal", "depth": depth, "width": width, "heads": heads} | parts
            for name, dtype in FORMATS.items():
                network = make([seed], tokens, dtype, **fields)
                observed = list(network.layers(network.first_state(words[text][None, None].to(dtype))))
                recovered = torch.zeros(depth + 1, dtype=torch.float64)
                for place in places:
                    tried = text[: place + 1].repeat(vocabulary, 1)  # (V, n)
                    tried[:, -1] = torch.arange(vocabulary)
                    states = network.layers(network.first_state(words[tried][None].to(dtype)))
                    for layer, state in enumerate(states):
                        ends = state[0, :, -1].double()  # (V, D)
                        recovered[layer] += share_right(ends, observed[layer][0, 0, place].double(), int(text[place]))
                        if name == "float64" and place == tokens - 1:
                            value = smallest(ends)
                            yield row(NAME, NEAREST, line, layer, seed, value, "rounding")
                for layer, share in enumerate(recovered):
                    yield row(NAME, FOUND, f"{line}, {name}", layer, seed, float(share) / len(places))
        for layer in range(depth + 1):
            yield row(NAME, NEAREST, "averages, -layers log10 n", layer, seed, -layer * math.log10(tokens))


def share_right(states: Tensor, observed: Tensor, truth: int) -> float:
    """Return 1 if the true word's state is the nearest one, divided by the number of equally near states."""
    distance = (states - observed).norm(dim=-1)
    nearest = distance == distance.min()
    return float(nearest[truth]) / float(nearest.sum())


def smallest(states: Tensor) -> float:
    """Return log10 of the smallest distance of two of the states (V, D), over their mean size."""
    distances = torch.cdist(states, states, compute_mode="donot_use_mm_for_euclid_dist")
    distances.fill_diagonal_(torch.inf)
    value = float(distances.min() / states.norm(dim=-1).mean())
    return math.log10(value) if value > LEAST else -math.inf
