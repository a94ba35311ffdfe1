"""Compute limits of attention as the number of tokens goes to infinity, in closed form.

Scores are g log n <x_i, x_j> for tokens of cosine rho. The token itself has n^g in the numerator, and the n others n^(1 + g rho) together,
so the token wins if g (1 - rho) > 1. Independent scores b sqrt(log n) N(0, 1) are a random energy model, in which the largest of n is b
sqrt(2) log n. The sum of squared weights goes to 0 below b = sqrt(2), and to 1 - sqrt(2) / b above. What all tokens share cancels in a
softmax, so scores of random maps have the deviation b sqrt(1 - rho).

For the sum g log n <x_i, x_j> + b sqrt(log n) N, the others have n^(1 + g rho + b^2 / 2) for b < sqrt(2), and the largest of them n^(g rho
+ sqrt(2) b) above. So the token itself wins if g (1 - rho) > max(1 + b^2 / 2, sqrt(2) b, by the branch of b).
"""

import math


def critical_of_cosines(rho: float) -> float:
    """Return the critical g for scores of cosines."""
    return 1 / (1 - rho)


def cosine_after(rho: float, gamma: float) -> float:
    """Return the cosine of two tokens after a layer with scores g log n <x_i, x_j>, for rho > 0."""
    critical = critical_of_cosines(rho)
    if abs(gamma - critical) < 1e-12:
        # Half of the weight is on the token itself, half on all others, whose mean is what all tokens share.
        return 4 * rho / (1 + 3 * rho)
    return 1.0 if gamma < critical else rho


def critical_of_noise(rho: float) -> float:
    """Return the critical b for scores of random maps."""
    return math.sqrt(2 / (1 - rho))


def squares_of_weights(rho: float, b: float) -> float:
    """Return the limit of the sum of squared weights of a row, for independent scores."""
    return max(0.0, 1 - critical_of_noise(rho) / b)


def decay_of_squares(b: float) -> float:
    """Return p such that the sum of squared weights falls like n^p, for independent scores of deviation b < sqrt(2) in units of sqrt(log
    n). The sum of e^(2 score) is n^(1 + 2 b^2) if 2 b < sqrt(2), else its largest term, n^(2 sqrt(2) b). The denominator is n^(2 + b^2)."""
    above = 1 + 2 * b * b if 2 * b < math.sqrt(2) else 2 * math.sqrt(2) * b
    return above - 2 - b * b


def critical_of_both(rho: float, b: float) -> float:
    """Return the g from which a token attends to itself, for scores g log n <x_i, x_j> + b sqrt(log n) N."""
    others = 1 + b * b / 2 if b < math.sqrt(2) else math.sqrt(2) * b
    return others / (1 - rho)
