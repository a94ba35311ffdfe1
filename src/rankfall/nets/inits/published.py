"""The start of the published networks: queries, keys and embeddings N(0, 0.02^2), every other map torch's default.

Torch's default for a linear map is uniform in +-1/sqrt(fan_in), weights and bias alike: a standard deviation of 0.083 at
width 48, four times that of queries and keys. `scale` multiplies the weights of value and output maps.
"""

import numpy as np

NARROW = ("query", "key", "embedding", "position")


def published(
    rng: np.random.Generator, role: str, kind: str, shape: tuple[int, ...], fan_in: int, *, scale: float = 1.0
) -> np.ndarray:
    if role in NARROW:
        return np.zeros(shape) if kind == "bias" else rng.normal(0.0, 0.02, shape)
    gain = scale if kind == "weight" and role in ("value", "output") else 1.0
    return gain * rng.uniform(-(fan_in**-0.5), fan_in**-0.5, shape)
