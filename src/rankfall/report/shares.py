"""The exact expected share of the most frequent symbol in a sequence in which one symbol has a fixed share (`tasks/_repeats.py`)."""

import math
from functools import cache

import numpy as np

from rankfall.series import power


@cache
def most_frequent(length: int, symbols: int, rho: float) -> float:
    """Return the expected accuracy of the best answer that is the same for all positions of a sequence.

    Counts of independent tokens are Poisson counts on condition of their sum, so P(no count above k) is one entry of a product of
    truncated Poisson series.
    """
    common = math.floor(rho * length + 0.5)  # tokens that are one symbol; the others are drawn independently
    own = length - common
    mean = own / symbols
    series = np.array(
        [math.exp(c * math.log(mean) - mean - math.lgamma(c + 1)) if mean else float(c == 0) for c in range(own + 1)]
    )
    total = math.exp(own * math.log(own) - own - math.lgamma(own + 1)) if own else 1.0  # P(all counts sum to `own`)

    def below(most: int) -> float:
        """Return P(no symbol occurs more than `most` times)."""
        if most < common:
            return 0.0
        others = power(np.where(np.arange(own + 1) <= most, series, 0.0), symbols - 1)
        first = np.where(np.arange(own + 1) <= most - common, series, 0.0)
        return float(np.convolve(others, first)[own]) / total

    chances = [below(most) for most in range(length + 1)]
    return sum(most * (chances[most] - chances[most - 1]) for most in range(1, length + 1)) / length
