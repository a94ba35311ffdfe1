"""Follow the cosine of two tokens from layer to layer, as tokens and width go to infinity (Giorlandino and Goldt 2025).

State: q, the mean square of a token's entries, and p, the mean product of two tokens' entries. Attention with scores of deviation beta
sqrt(log T) has outputs of q' = p + (q - p) max(0, 1 - beta_c / beta), beta_c = sqrt(2 / (1 - p)) at q = 1, and p' = p. Without the sequence
mean both are smaller by p. A two-layer ReLU MLP with weights of variance w and biases of variance b follows the arc-cosine kernel.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Regime:
    """Parameters of the networks. `beta` is the scale of scores. `value`, `weight` and `bias` are variances of value map, MLP maps and
    biases. `pre` places norms before branches. `centred` subtracts the sequence mean from the output of attention."""

    beta: float
    value: float = 0.2
    weight: float = 0.2
    bias: float = 4e-4
    value_bias: float = 4e-4
    pre: bool = False
    centred: bool = False


def cosines(start: float, layers: int, regime: Regime) -> list[float]:
    """Return cosines at layers 0 .. L, from states of q = 1."""
    q, p, rho = 1.0, start, [start]
    for _ in range(layers):
        q, p = after(q, p, regime)
        rho.append(p / q)
    return rho


def after(q: float, p: float, regime: Regime) -> tuple[float, float]:
    """Return q and p after a block of attention and MLP, each with a skip connection."""
    dq, dp = attention(p / q, regime)
    q, p = (q + dq, p + dp) if regime.pre else (1.0, (p / q + dp) / (1 + dq))
    dq, dp = mlp(p / q, regime)
    return (q + dq, p + dp) if regime.pre else (1.0, (p / q + dp) / (1 + dq))


def attention(rho: float, regime: Regime) -> tuple[float, float]:
    """Return q and p of the output of attention on normed states."""
    squares = 0.0 if rho >= 1 else max(0.0, 1 - math.sqrt(2 / (1 - rho)) / regime.beta)
    shared = 0.0 if regime.centred else rho
    q = regime.value * (shared + (1 - rho) * squares) + regime.value_bias
    return q, regime.value * shared + regime.value_bias


def mlp(rho: float, regime: Regime) -> tuple[float, float]:
    """Return q and p of the output of the MLP on normed states."""
    q = regime.weight + regime.bias
    c = min(1.0, (regime.weight * rho + regime.bias) / q)
    kernel = (math.sqrt(1 - c * c) + c * (math.pi - math.acos(c))) / math.pi
    return regime.weight * q / 2 + regime.bias, regime.weight * q / 2 * kernel + regime.bias
