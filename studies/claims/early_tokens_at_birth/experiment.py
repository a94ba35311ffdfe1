"""Measure the derivative of the last token's state by each token of the input, by depth, in causal attention with random weights.

The network is that of Wu et al.: one head (here of width 32), without norms and output map. Eight items with their labels and a query are
17 tokens. The bias is the logarithm of how much more the first item counts than the middle one, |d x_last / d x_first| over |d x_last / d
x_middle|, for whole blocks of derivatives in the Frobenius norm. It is zero if a network treats places alike. A second claim is about deep
decoders, which have norms before branches, and skips.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from rankfall import Context, Evidence, Network
from rankfall import evidence_row as row
from studies.claims.draws import draw
from studies.claims.early_tokens_at_birth.names import BIAS, DECODER, FIRST, NETWORKS
from studies.claims.parts import PRE_NORM
from studies.claims.untrained import make

COST = {"seconds": 120}
BUILDS = {"mask": ["causal"], "position": ["none", "alibi", "rope"], "residual": ["none", "add"], "norm": ["layer"]}
AMPLIFIES, ONLY = "depth_amplifies_early_bias", "only_the_first_token_is_left"
POSITIONS = dict(zip(NETWORKS, ("none", "alibi", "rope"), strict=True))
KINDS: dict[str, dict[str, Any]] = {"no skips": {"residual": "none"}, "skips": {"residual": "add"}, DECODER: PRE_NORM}
SLOPE = -math.log(0.8)  # of ALiBi, as in the source's decay of 0.8


def early_tokens_at_birth(
    context: Context,
    *,
    items: int = 8,
    width: int = 32,
    layers: list[int] | tuple[int, ...] = (1, 2, 4, 6, 8, 10, 16, 32),
    deep: list[int] | tuple[int, ...] = (8, 16, 32, 64, 128),
    seeds: int = 5,
) -> Evidence:
    """Return the evidence. Weights have the deviation (3 width)^-1/2 of uniform draws in +-width^-1/2, and inputs are N(0, 1)."""
    tokens = 2 * items + 1
    for seed in range(seeds):
        x = draw([seed], 1, tokens, width, name="early_tokens_at_birth")
        for kind, parts in KINDS.items():
            read = deep if kind == DECODER else layers
            for line, position in POSITIONS.items():
                init = {"name": "normal", "deviation": (3 * width) ** -0.5}
                network = make(
                    [seed], tokens, depth=max(read), width=width, mask="causal", position=position, init=init, **parts
                )
                remove_output_maps(network, width)
                if line == "ALiBi":
                    network.position.slopes = [SLOPE]
                influence = influence_by_layer(network, x)  # (L, T): after each layer
                for layer in read:
                    by_token = influence[layer - 1]
                    name = f"{line}, {kind}"
                    yield row(ONLY, FIRST, name, layer, seed, float(by_token[0] / by_token.sum()))
                    if kind != DECODER:
                        bias = float((by_token[0] / by_token[items]).log())
                        yield row(AMPLIFIES, BIAS, name, layer, seed, bias)


def remove_output_maps(network: Network, width: int) -> None:
    """Remove the effect of output maps: a head's context is added as it is."""
    for block in network.blocks:
        block.attention.output.weight.copy_(torch.eye(width, dtype=block.attention.output.weight.dtype))


def influence_by_layer(network: Network, x: Tensor) -> Tensor:
    """Return |d x_last / d x_j|, Frobenius, after each layer (L, T), up to a factor per layer."""
    tokens, width = x.shape[-2:]
    state, influences = x, []
    # How far each number of the input has moved the states: (T D, 1, 1, T, D).
    carried = torch.eye(tokens * width, dtype=x.dtype).view(tokens * width, *x.shape)
    for block in network.blocks:
        carried = torch.func.vmap(partial(push, block, state))(carried)
        carried = carried / carried.abs().max()
        state = block(state)
        last = carried[:, 0, 0, -1].view(tokens, width, width)
        influences.append(last.flatten(1).norm(dim=-1))
    return torch.stack(influences)


def push(block: Callable[[Tensor], Tensor], state: Tensor, tangent: Tensor) -> Tensor:
    """Return the change of a block's output for a small change of its input."""
    moved: Tensor = torch.func.jvp(block, (state,), (tangent,))[1]
    return moved
