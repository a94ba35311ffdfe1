"""Build untrained networks for the experiments of claims, one member per seed, in float64 by default."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rankfall import (
    Architecture,
    Component,
    Network,
    Shape,
    attention_alone,
    build_network,
    centred_block,
    centred_state,
)

BARE = attention_alone("bare")


def make(seeds: Sequence[int], tokens: int, dtype: torch.dtype = torch.float64, **fields: Any) -> Network:
    """Return pure attention, changed by `fields`: a component by its name or as `{name: ..., option: value}`."""
    shape = Shape("vectors", "values", length=tokens, size_in=1, size_out=1)
    network = build_network(design(fields), shape, len(seeds), dtype)
    network.initialise(list(seeds))
    return network.requires_grad_(False)


def design(fields: dict[str, Any]) -> Architecture:
    """Return the architecture of pure attention, changed by these fields."""
    kinds = {name for name, value in vars(BARE).items() if isinstance(value, Component)} | {"mlp_residual"}
    named: dict[str, Any] = {name: Component.parse(value) if name in kinds else value for name, value in fields.items()}
    return replace(BARE, **named)


def spread_without_rounding(network: Network, x: Tensor) -> Iterator[Tensor]:
    """Yield log10 of the spread of tokens (K,) at each layer, from states (K, 1, T, D), without a rounding floor (centred propagation)."""
    state = centred_state(network, x)
    for block in (*network.blocks, None):
        yield (state.rest.unit.flatten(-2).norm(dim=-1).log10() + state.rest.log / math.log(10))[:, 0]
        if block is not None:
            state = centred_block(block, state)
