"""Inputs of the measurement of orders: networks of one layer with random weights, and states of nearly identical rows, X = 1 x^T + R."""

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rankfall.design import Architecture
from rankfall.nets.attentions._heads import Heads
from rankfall.nets.network import Network, Shape, build
from rankfall.nets.primitives import Initial
from rankfall.random_streams import stream
from rankfall.rank.centred.scaled import Scaled
from rankfall.rank.centred.state import State, begin
from rankfall.rank.centred.tokenwise import norm


def networks(design: Architecture, tokens: int, draws: int, biases: bool, seed: int = 0) -> Network:
    """Build one network per draw, in float64. Parameters of equal name and shape are the same in every design."""
    network = build(design, Shape("vectors", "values", length=tokens, size_in=1, size_out=1), draws, torch.float64)
    for name, value in network.named_parameters():
        value.data.copy_(initial_values(name, value.initial, tuple(value.shape[1:]), seed, draws, biases))  # type: ignore[attr-defined]
    return network.requires_grad_(False)


@lru_cache(maxsize=1024)
def initial_values(name: str, start: Initial, shape: tuple[int, ...], seed: int, draws: int, biases: bool) -> Tensor:
    """Return a parameter's initial values (K, ...), which the designs of a table share.

    States keep sizes of order one and positions have a visible effect. `biases`: whether linear maps have them.
    """
    if start.kind == "constant":
        return torch.full((draws, *shape), start.constant, dtype=torch.float64)
    rngs = [stream(seed + draw, "init", name) for draw in range(draws)]
    if start.kind == "bias" and start.deviation is None:
        drawn = [rng.normal(0.0, 0.5, shape) * biases for rng in rngs]
    elif start.role == "position" and start.deviation is None:
        drawn = [rng.uniform(-0.5, 0.5, shape) for rng in rngs]
    else:
        usual = 1.0 if start.role == "embedding" else start.fan_in**-0.5
        drawn = [rng.normal(0.0, usual if start.deviation is None else start.deviation, shape) for rng in rngs]
    return torch.from_numpy(np.stack(drawn))


def start(network: Any, draws: int, tokens: int, seed: int = 0) -> State:
    """Draw x and the direction of R for each draw, one sample (K, 1, ...)."""
    width = network.embedding.map.weight.shape[2]
    rngs = [stream(seed + draw, "orders", tokens, width) for draw in range(draws)]
    content = torch.from_numpy(np.stack([rng.normal(size=(1, 1, width)) for rng in rngs]))
    content = content + torch.from_numpy(np.stack([rng.normal(size=(1, tokens, width)) for rng in rngs]))
    return begin(network, content if network.sentinels is None else network.sentinels.add(content))


def wake(network: Any, state: State) -> None:
    """Scale queries by up to four, and flip their signs, until the score of the common row with itself is at least 0.6.

    Where scores are negative, relu^2 gives weights of zero, and nothing could be measured. All normalisers get the same queries.
    """
    block = network.blocks[0]
    if not isinstance(block.attention, Heads):
        return  # not needed: queries and keys of a gated unit start equal, features of linear attention are positive
    attention: Any = block.attention
    x = norm(block.norm1, state).common if block.placement == "pre" else state.common
    q, k = attention.split(attention.query(x)), attention.split(attention.key(x))  # (K, 1, H, 1, d)
    score = (q * k).sum(-1).view(len(x), -1) * attention.head_width**-0.5  # (K, H)
    factor = (score.sign() * (0.6 / score.abs()).clamp(1.0, 4.0)).repeat_interleave(attention.head_width, 1)  # (K, H*d)
    attention.query.weight *= factor.unsqueeze(1)
    attention.query.bias *= factor.unsqueeze(1)


def at_scales(state: State, scales: np.ndarray) -> State:
    """Repeat the state for each scale of R; scales take the place of samples."""
    log = torch.from_numpy(scales * math.log(10)).expand(len(state.common), -1)
    common, sentinels, unit = (
        x.expand(-1, len(scales), -1, -1) for x in (state.common, state.sentinels, state.rest.unit)
    )
    return replace(state, common=common, sentinels=sentinels, rest=Scaled(unit, log))
