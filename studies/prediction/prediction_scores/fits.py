"""Fit two models with a small penalty on everything but the intercept: logistic for whether, linear for how much."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
PENALTY = 1.0  # factor of the squared coefficients, which are added to a sum over networks
STEPS = 50  # at most; a few suffice


def linear(x: Array, y: Array) -> Array:
    """Return the coefficients (p + 1,), the intercept first."""
    features = with_one(x)
    return np.asarray(np.linalg.solve(features.T @ features + penalty(features), features.T @ y), dtype=np.float64)


def logistic(x: Array, y: Array) -> Array:
    """Return the coefficients (p + 1,) for y of 0 and 1, by Newton steps, which are halved while they would increase the loss."""
    features, ridge = with_one(x), penalty(with_one(x))
    coefficients = np.zeros(features.shape[1])
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-np.clip(features @ coefficients, -35, 35)))
        slope = features.T @ (p - y) + ridge @ coefficients
        curve = features.T @ (features * (p * (1 - p) + 1e-12)[:, None]) + ridge
        step = np.linalg.solve(curve, slope)
        size = 1.0
        while size > 1e-4 and loss(features, y, coefficients - size * step, ridge) > loss(
            features, y, coefficients, ridge
        ):
            size /= 2
        coefficients = coefficients - size * step
        if np.abs(step).max() < 1e-8:
            break
    return coefficients


def loss(features: Array, y: Array, coefficients: Array, ridge: Array) -> float:
    """Return the logistic loss with its penalty."""
    score = features @ coefficients
    return float(np.logaddexp(0, score).sum() - y @ score + coefficients @ ridge @ coefficients / 2)


def scores(x: Array, coefficients: Array) -> Array:
    """Return scores that rise with the outcome, for both models."""
    score: Array = with_one(x) @ coefficients
    return score


def with_one(x: Array) -> Array:
    """Return x with a first column of ones, for the intercept."""
    return np.hstack([np.ones((len(x), 1)), x])


def penalty(features: Array) -> Array:
    """Return the penalty as a matrix. The intercept has a tiny one, for outcomes that are all equal."""
    matrix = PENALTY * np.eye(features.shape[1])
    matrix[0, 0] = 1e-6
    return matrix
