"""Draw tokens and random maps for the experiments of claims, one per seed, in float64 by default, and compute statistics of states.

Nothing here builds a network, so an experiment that needs only this module depends on no component.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rankfall import random_stream, relative_residual


def draw(seeds: Sequence[int], *shape: int, name: str, dtype: torch.dtype = torch.float64) -> Tensor:
    """Return standard normal numbers (K, *shape), which depend only on each seed."""
    drawn = [random_stream(seed, "claims", name, *shape).normal(size=shape) for seed in seeds]
    return torch.from_numpy(np.stack(drawn)).to(dtype)


def spread(x: Tensor) -> Tensor:
    """Return |X - 1 mean(X)| of states (..., T, D), Frobenius: (...)."""
    return (x - x.mean(-2, keepdim=True)).flatten(-2).norm(dim=-1)


def log10_residual(x: Tensor, floor: float) -> float:
    """Return log10 of the relative residual of states, NaN below `floor`, where it may be rounding."""
    residual = float(relative_residual(x, norm="frobenius"))
    return math.log10(residual) if residual > floor else math.nan


def log10(value: float) -> float:
    """Return log10, minus infinity for zero."""
    return math.log10(value) if value > 0 else -math.inf


def numerical_rank(x: Tensor, tolerance: float) -> int:
    """Count the singular values that exceed `tolerance` times the largest."""
    s = torch.linalg.svdvals(x)
    return int((s > tolerance * s[0]).sum())


def cosine(x: Tensor) -> Tensor:
    """Return the mean cosine between two different tokens of states (..., T, D): (...)."""
    unit = x / x.norm(dim=-1, keepdim=True)
    tokens = x.shape[-2]
    return ((unit.sum(-2) ** 2).sum(-1) - tokens) / (tokens * (tokens - 1))


def like_tokens(seed: int, tokens: int, width: int, rho: float, name: str) -> Tensor:
    """Return tokens sqrt(rho) z_0 + sqrt(1 - rho) z_i of length one (T, D). Two of them have the cosine rho, up to 1 / sqrt(D)."""
    drawn = draw([seed], tokens + 1, width, name=name)[0]
    x = rho**0.5 * drawn[:1] + (1 - rho) ** 0.5 * drawn[1:]
    unit: Tensor = x / x.norm(dim=-1, keepdim=True)
    return unit


def unit_deviation(x: Tensor) -> Tensor:
    """Apply a layer norm without gain and bias: each token (..., D) gets mean 0 and deviation 1."""
    x = x - x.mean(-1, keepdim=True)
    return x * x.square().mean(-1, keepdim=True).rsqrt()


def linear_map(seed: int, rows: int, columns: int, variance: float, name: str) -> Tensor:
    """Return a map with entries N(0, variance / rows), so that outputs have `variance` times the mean square of inputs."""
    return draw([seed], rows, columns, name=name)[0] * (variance / rows) ** 0.5


def standard_normal(seed: int, *shape: int, name: str) -> Tensor:
    return draw([seed], *shape, name=name)[0]


def identity(size: int) -> Tensor:
    return torch.eye(size, dtype=torch.float64)
