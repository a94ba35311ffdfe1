"""Sequences in which a share `rho` of the tokens is one symbol: how many tokens that are, and how frequent the most frequent symbol is."""

from math import exp, floor, lgamma, log

import numpy as np


def count_common(length: int, rho: float) -> int:
    """Return how many tokens of a sequence take its common symbol."""
    return floor(rho * length + 0.5)


def count_maxima(length: int, symbols: int, common: int = 0) -> np.ndarray:
    """Return P(count of the most frequent symbol), 0 .. length, if `common` tokens are one symbol and the others are uniform.

    Counts of independent tokens are Poisson counts on condition of their sum, so P(no count above k) is one entry of a product of
    truncated Poisson series. P(a count is k, and none above) is the rise of that product from k - 1 to k.
    """
    drawn = length - common
    mean, counts = drawn / symbols, np.arange(drawn + 1)
    series = np.array([exp(c * log(mean) - mean - lgamma(c + 1)) if mean else float(c == 0) for c in range(drawn + 1)])
    total = exp(drawn * log(drawn) - drawn - lgamma(drawn + 1)) if drawn else 1.0  # P(all counts sum to `drawn`)

    def rise_at(most: int) -> float:
        below, rise = power_and_rise(
            np.where(counts < most, series, 0), np.where(counts == most, series, 0), symbols - 1
        )
        first = np.where(counts < most - common, series, 0), np.where(counts == most - common, series, 0)
        return float((multiply(below, first[1]) + multiply(rise, first[0] + first[1]))[drawn]) / total

    return np.array([rise_at(most) if most >= common else 0.0 for most in range(length + 1)])


def power_and_rise(series: np.ndarray, step: np.ndarray, exponent: int) -> tuple[np.ndarray, np.ndarray]:
    """Return series^exponent and (series + step)^exponent - series^exponent as power series of their length.

    All terms are sums of products, so that small ones keep their digits, which a difference of the two powers would lose.
    """
    power, rise = np.eye(1, len(series))[0], np.zeros(len(series))
    while exponent:
        if exponent & 1:
            power, rise = multiply(power, series), multiply(power + rise, step) + multiply(rise, series)
        series, step, exponent = multiply(series, series), multiply(2 * series + step, step), exponent >> 1
    return power, rise


def multiply(series: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the product of two power series, given by their coefficients, truncated to their length."""
    return np.convolve(series, other)[: len(series)]
