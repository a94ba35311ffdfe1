"""Confidence intervals of a rate over tokens grouped in sentences.

Tokens of one sentence are not independent observations, since a sentence may be easy or hard as a whole. So the variance of the rate is
taken over sentences (the clustered variance of a ratio of sums). It gives the effective number of independent tokens, which enters
Wilson's interval; this stays within 0 and 1. The interval describes which sentences are tested.
"""

import math

from torch import Tensor

NORMAL = 1.959963984540054  # the 97.5% quantile of a normal distribution, for 95% intervals


def estimate_rate(right: Tensor, asked: Tensor) -> tuple[float, float, float]:
    """Return (rate, low, high) from sums by sentence (S,) of right tokens and of tokens asked for.

    Where all or none are right, the variance over sentences cannot be estimated, and tokens count as independent.
    """
    total, sentences = float(asked.sum()), len(asked)
    rate = float(right.sum()) / total
    spread = rate * (1 - rate)
    effective = total
    if spread > 1e-12 and sentences > 1:
        apart = float((right - rate * asked).double().square().sum())
        variance = sentences / (sentences - 1) * apart / total**2
        # Never more than all tokens: sentences more alike than independent tokens would be are so by chance.
        effective = min(total, spread / variance) if variance > 0 else total
    low, high = wilson(rate, effective)
    return rate, low, high


def wilson(rate: float, count: float) -> tuple[float, float]:
    """Return the range of all shares p with |rate - p| <= z sqrt(p (1 - p) / count)."""
    z2 = NORMAL**2 / count
    middle = (rate + z2 / 2) / (1 + z2)
    half = math.sqrt(z2 * rate * (1 - rate) + z2**2 / 4) / (1 + z2)
    return min(rate, max(0.0, middle - half)), max(
        rate, min(1.0, middle + half)
    )  # rounding may put the ends beyond the rate
