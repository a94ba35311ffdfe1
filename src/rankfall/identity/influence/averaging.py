"""Closed forms for the share of each position in the last token of an untrained causal stack ("lost in the middle at birth").

Each layer keeps 1 - a of a token and adds a times the average C of all tokens up to it, C_ji = 1 / j for i <= j. After H layers the last
of n tokens has the weights of the last row of M = ((1 - a) 1 + a C)^H = sum_k w_k C^k, with w_k = binom(H, k) a^k (1 - a)^(H - k). As n
grows they become a density of the relative place x = i / n,

    (1 - a)^H delta(1 - x) + sum_(k >= 1) w_k (ln 1/x)^(k - 1) / (k - 1)!

C is a Hausdorff matrix: (C^k)_ni is binom(n - 1, i - 1) times the integral over [0, 1] of x^(i - 1) (1 - x)^(n - i) against the k-th
term of the density. So at any n the weights are the density smoothed by a binomial, which `exact` computes. `average_uniformly` is the
product of matrices.

Layers with independent random value maps add in squares instead, since contributions of different sets of layers are orthogonal in the
mean: E ||d e_n / d x_i||^2 is proportional to sum_k binom(H, k) (1 - a)^(2 (H - k)) a^(2 k) (C^k)_ni^2. This is `in_squares`.
"""

import numpy as np
from scipy.special import comb, gammaincc, gammaln
from scipy.stats import binom, spearmanr

STEP, LOWEST, HIGHEST = 0.005, -40.0, 6.7  # grid of ln(ln 1/x) for numerical integration


def step(row: np.ndarray) -> np.ndarray:
    """Return a row (n,) times C: entry i is the sum over j >= i of row_j / j."""
    return np.cumsum((row / np.arange(1, len(row) + 1))[::-1])[::-1]


def average_uniformly(length: int, depth: int, alpha: float) -> np.ndarray:
    """Return the last row of ((1 - a) 1 + a C)^H, by H products."""
    row = np.zeros(length)
    row[-1] = 1.0
    for _ in range(depth):
        row = (1 - alpha) * row + alpha * step(row)
    return row


def exact(length: int, depth: int, alpha: float) -> np.ndarray:
    """Return the row of `average_uniformly` from its closed form, the density smoothed by a binomial.

    The integral is a sum over steps of s, x = exp(-exp(s)), where the integrand is smooth and falls off on both sides.
    """
    t = np.exp(np.arange(LOWEST, HIGHEST, STEP))  # ln 1/x
    powers = np.arange(1, depth + 1)
    logs = (powers - 1) * np.log(t)[:, None] - gammaln(powers)  # (S, H)
    measure = np.exp(logs) @ weights(depth, alpha)[1:] * t * STEP  # density times dt
    place = np.arange(1, length + 1)
    chosen = gammaln(length) - gammaln(place) - gammaln(length - place + 1)
    kernel = np.exp(chosen - np.outer(t, place) + np.log(-np.expm1(-t))[:, None] * (length - place))  # (S, n)
    row = measure @ kernel
    row[-1] += (1 - alpha) ** depth
    return row


def continuum(length: int, depth: int, alpha: float) -> np.ndarray:
    """Return the mass of the density on each of n equal parts of (0, 1]: -ln x of its k-th term has the gamma distribution of order k."""
    edges = -np.log(np.arange(1, length + 1) / length)  # ln 1/x at the upper edges
    below = weights(depth, alpha)[1:] @ np.stack([gammaincc(k, edges) for k in range(1, depth + 1)])
    row = np.diff(below, prepend=0.0)
    row[-1] += (1 - alpha) ** depth
    return row


def in_squares(length: int, depth: int, alpha: float) -> np.ndarray:
    """Return the norms that independent random value maps of gain one give, as shares that sum to one."""
    row, squares = np.zeros(length), np.zeros(length)
    row[-1] = 1.0
    for k in range(depth + 1):
        squares += comb(depth, k) * (1 - alpha) ** (2 * (depth - k)) * alpha ** (2 * k) * row**2
        row = step(row)
    return np.sqrt(squares) / np.sqrt(squares).sum()


def weights(depth: int, alpha: float) -> np.ndarray:
    """Return w_k, k = 0 .. H: the share of paths that go through k of H attentions."""
    return binom.pmf(np.arange(depth + 1), depth, alpha)


def agreement(shares: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Return Spearman's rank correlation of two sets of shares, and half the sum of their absolute differences (0: equal, 1: disjoint)."""
    return float(spearmanr(shares, other).statistic), float(np.abs(shares - other).sum() / 2)
