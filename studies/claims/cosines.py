"""Tokens with a chosen cosine, norms, and random maps."""

import torch
from torch import Tensor

from studies.claims.untrained import draw


def like_tokens(seed: int, tokens: int, width: int, rho: float, name: str) -> Tensor:
    """Return sqrt(rho) z_0 + sqrt(1 - rho) z_i, of length one (T, D). Two different tokens have the cosine rho, up to 1 / sqrt(D)."""
    drawn = draw([seed], tokens + 1, width, name=name)[0]
    x = rho**0.5 * drawn[:1] + (1 - rho) ** 0.5 * drawn[1:]
    found: Tensor = x / x.norm(dim=-1, keepdim=True)
    return found


def unit_deviation(x: Tensor) -> Tensor:
    """Apply a layer norm without gain and bias: each token (..., D) gets mean 0 and deviation 1."""
    x = x - x.mean(-1, keepdim=True)
    return x * x.square().mean(-1, keepdim=True).rsqrt()


def linear_map(seed: int, rows: int, columns: int, variance: float, name: str) -> Tensor:
    """Return entries N(0, variance / rows), so that outputs have `variance` times the mean square of inputs."""
    return draw([seed], rows, columns, name=name)[0] * (variance / rows) ** 0.5


def standard_normal(seed: int, *shape: int, name: str) -> Tensor:
    return draw([seed], *shape, name=name)[0]


def identity(size: int) -> Tensor:
    return torch.eye(size, dtype=torch.float64)
