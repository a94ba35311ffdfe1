"""Untrained networks for the experiments of claims: one member per seed, in float64 by default, with vectors as inputs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rankfall import Architecture, Component, Network, Shape, attention_alone, build_network, random_stream

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


def draw(seeds: Sequence[int], *shape: int, name: str, dtype: torch.dtype = torch.float64) -> Tensor:
    """Return standard normal numbers (K, *shape), which depend only on each seed."""
    drawn = [random_stream(seed, "claims", name, *shape).normal(size=shape) for seed in seeds]
    return torch.from_numpy(np.stack(drawn)).to(dtype)


def spread(x: Tensor) -> Tensor:
    """Return |X - 1 mean(X)| of states (..., T, D), Frobenius: (...)."""
    return (x - x.mean(-2, keepdim=True)).flatten(-2).norm(dim=-1)


def cosine(x: Tensor) -> Tensor:
    """Return the mean cosine between two different tokens of states (..., T, D): (...)."""
    unit = x / x.norm(dim=-1, keepdim=True)
    tokens = x.shape[-2]
    return ((unit.sum(-2) ** 2).sum(-1) - tokens) / (tokens * (tokens - 1))
