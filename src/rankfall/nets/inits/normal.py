"""Every weight N(0, deviation^2), every bias zero: the initialisation of BERT and similar models."""

import numpy as np


def normal(
    rng: np.random.Generator, role: str, kind: str, shape: tuple[int, ...], fan_in: int, *, deviation: float = 0.02
) -> np.ndarray:
    return np.zeros(shape) if kind == "bias" else rng.normal(0.0, deviation, shape)
