"""The initialisation of the published networks: value and output maps uniform in +-1/sqrt(fan_in), all else N(0, 0.02^2), biases zero.

At width 48 value and output maps have a standard deviation of 0.083, four times that of queries and keys. `scale` multiplies the former,
`scores` the latter: larger values concentrate attention on fewer tokens.
"""

import numpy as np


def published(
    rng: np.random.Generator,
    role: str,
    kind: str,
    shape: tuple[int, ...],
    fan_in: int,
    *,
    scale: float = 1.0,
    scores: float = 1.0,
) -> np.ndarray:
    if kind == "bias":
        return np.zeros(shape)
    if role in ("value", "output"):
        return scale * rng.uniform(-(fan_in**-0.5), fan_in**-0.5, shape)
    return rng.normal(0.0, 0.02 * (scores if role in ("query", "key") else 1.0), shape)
