"""Inputs of the measurement of orders: networks of one layer with random weights, and states of nearly identical rows, X = 1 x^T + R."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from rankfall.design import Architecture
from rankfall.nets.attentions._heads import Heads
from rankfall.nets.network import Network, Shape, build
from rankfall.random_streams import stream
from rankfall.rank.centred.state import State, begin, rescale
from rankfall.rank.centred.tokenwise import norm


def networks(design: Architecture, tokens: int, draws: int, biases: bool, seed: int = 0) -> Network:
    """Build one network per draw, in float64. Parameters of equal name and shape are the same in every design."""
    made = build(design, Shape("vectors", "values", length=tokens, size_in=1, size_out=1), draws, torch.float64)
    made.init = drawing(biases)
    made.initialise([seed + draw for draw in range(draws)])
    return made.requires_grad_(False)


def drawing(biases: bool) -> Any:
    """Return an initialiser under which states keep sizes of order one and positions have a visible effect, with biases if wanted."""

    def draw(rng: np.random.Generator, role: str, kind: str, shape: tuple[int, ...], fan_in: int) -> np.ndarray:
        if kind == "bias":
            return rng.normal(0.0, 0.5, shape) * biases
        if role == "position":
            return rng.uniform(-0.5, 0.5, shape)
        return rng.normal(0.0, 1.0 if role == "embedding" else fan_in**-0.5, shape)

    return draw


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


def at(state: State, scales: np.ndarray) -> State:
    """Repeat the state for each scale of R; scales take the place of samples."""
    many = len(scales)
    log = torch.from_numpy(scales * math.log(10))
    wide = replace(
        state,
        common=state.common.expand(-1, many, -1, -1),
        sentinels=state.sentinels.expand(-1, many, -1, -1),
        rest=replace(
            state.rest, unit=state.rest.unit.expand(-1, many, -1, -1), log=state.rest.log.expand(-1, many).clone()
        ),
    )
    return rescale(wide, log)
