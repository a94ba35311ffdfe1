"""The initialisation for the residual `deepnorm` (Wang et al. 2022): Xavier's, scaled by b = (8 L)^(-1/4) in value, output and MLP maps.

Weights are N(0, g^2 2 / (fan in + fan out)), with g = b for the roles value, output and mlp, and g = 1 for queries and keys. All others
are N(0, 0.02^2), and biases are zero. `beta`: b; null: as above.
"""

import numpy as np


def deepnorm(
    rng: np.random.Generator,
    role: str,
    kind: str,
    shape: tuple[int, ...],
    fan_in: int,
    depth: int,
    *,
    beta: float | None = None,
) -> np.ndarray:
    if kind == "bias":
        return np.zeros(shape)
    if role not in ("query", "key", "value", "output", "mlp"):
        return rng.normal(0.0, 0.02, shape)
    scaled = (8 * depth) ** -0.25 if beta is None else beta
    gain = 1.0 if role in ("query", "key") else scaled
    return rng.normal(0.0, gain * (2 / (shape[0] + shape[1])) ** 0.5, shape)
