"""Confidence intervals of a rate over tokens that come in sentences.

Tokens of one sentence are no independent observations: a sentence may be easy or hard as a whole. So the variance of the rate is taken
over sentences (that of a ratio of sums, clustered), which gives the number of independent tokens that would vary as much; with it the
interval is Wilson's, which stays within 0 and 1. What varies is which sentences are tested.
"""

import math

from torch import Tensor

NORMAL = 1.959963984540054  # the 97.5% point of a normal distribution: intervals hold 95%


def estimate_rate(right: Tensor, asked: Tensor) -> tuple[float, float, float]:
    """(rate, low, high) from sums by sentence (S,): of what is right and of tokens asked for.

    Where all or none are right, the variance over sentences cannot be estimated, and tokens count as independent.
    """
    total, sentences = float(asked.sum()), len(asked)
    rate = float(right.sum()) / total
    spread = rate * (1 - rate)
    effective = total
    if spread > 1e-12 and sentences > 1:
        apart = float((right - rate * asked).double().square().sum())
        variance = sentences / (sentences - 1) * apart / total**2
        # Never more than all tokens: that sentences are more alike than chance allows is itself chance.
        effective = min(total, spread / variance) if variance > 0 else total
    low, high = wilson(rate, effective)
    return rate, low, high


def wilson(rate: float, count: float) -> tuple[float, float]:
    """All shares p with |rate - p| <= z sqrt(p (1 - p) / count)."""
    z2 = NORMAL**2 / count
    middle = (rate + z2 / 2) / (1 + z2)
    half = math.sqrt(z2 * rate * (1 - rate) + z2**2 / 4) / (1 + z2)
    return min(rate, max(0.0, middle - half)), max(rate, min(1.0, middle + half))  # which rounding may leave by a digit
