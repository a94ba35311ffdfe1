"""Sequences in which a share `rho` of the tokens is one symbol: how many tokens that are, and how frequent the most frequent symbol is."""

from math import exp, floor, lgamma, log

import numpy as np


def count_common(length: int, rho: float) -> int:
    """Return how many tokens of a sequence take its common symbol."""
    return floor(rho * length + 0.5)


def count_maxima(length: int, symbols: int, common: int = 0) -> np.ndarray:
    """Return P(count of the most frequent symbol), 0 .. length, if `common` tokens are one symbol and the others are uniform.

    Counts of independent tokens are Poisson counts on condition of their sum, so P(no count above k) is one entry of a product of
    truncated Poisson series.
    """
    drawn = length - common
    mean, counts = drawn / symbols, np.arange(drawn + 1)
    series = np.array([exp(c * log(mean) - mean - lgamma(c + 1)) if mean else float(c == 0) for c in range(drawn + 1)])
    total = exp(drawn * log(drawn) - drawn - lgamma(drawn + 1)) if drawn else 1.0  # P(all counts sum to `drawn`)

    def at_most(most: int) -> float:
        """Return P(no symbol occurs more than `most` times)."""
        if most < common:
            return 0.0
        others = power(np.where(counts <= most, series, 0.0), symbols - 1)
        return float(np.convolve(others, np.where(counts <= most - common, series, 0.0))[drawn]) / total

    return np.diff([at_most(most) for most in range(length + 1)], prepend=0.0)


def power(series: np.ndarray, exponent: int) -> np.ndarray:
    """Return a power of a power series, given by its coefficients, truncated to the length of `series`."""
    result = np.eye(1, len(series))[0]
    while exponent:
        if exponent & 1:
            result = np.convolve(result, series)[: len(series)]
        series, exponent = np.convolve(series, series)[: len(series)], exponent >> 1
    return result
