"""Power series as arrays of their coefficients."""

import numpy as np


def power(series: np.ndarray, exponent: int) -> np.ndarray:
    """Return a power of a power series, truncated to the length of `series`."""
    result = np.eye(1, len(series))[0]
    while exponent:
        if exponent & 1:
            result = np.convolve(result, series)[: len(series)]
        series, exponent = np.convolve(series, series)[: len(series)], exponent >> 1
    return result
