"""Compute statistics of held-out networks as sums over pairs of architectures, so that resampling architectures is a product of matrices.

A pair of networks of one fold is right if the network with the higher score has the higher outcome, half right if scores tie, and does not
count if outcomes tie. With outcomes 0 and 1 the share of right pairs is the AUC. With any outcome, twice the share less 1 is Somers' D of
the scores given the outcome, `scipy.stats.somersd(outcome, score)`. Pairs of two folds do not count: their scores are of two models, whose
intercepts have seen each other's outcomes. A network without a score (NaN: no other fold to learn from) makes no pair.

An architecture that is drawn w times stands for w architectures like it. Its networks make pairs with those of an architecture drawn v
times w v times, and among themselves w times: copies of a network do not make pairs, since one would be judged by the other.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Sums:
    """A ratio of two quadratic forms in how often each architecture is drawn, or of two linear forms, times `scale` plus `shift`."""

    above: Array  # (A, A), or (A,)
    below: Array
    scale: float = 1.0
    shift: float = 0.0

    def value(self, drawn: Array) -> Array:
        """Return the ratio (B,) of draws (B, A), NaN if there is no pair."""
        if self.above.ndim == 1:
            above, below = drawn @ self.above, drawn @ self.below
        else:
            above, below = (sum_pairs(drawn, form) for form in (self.above, self.below))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(below > 0, above / np.where(below > 0, below, 1.0), np.nan)
        ratios: Array = self.scale * ratio + self.shift
        return ratios

    def deciding(self) -> tuple[int, int]:
        """Return the number of architectures that count, and how many have the better network of a pair, or the worse:
        the smaller count."""
        if self.below.ndim == 1:
            count = int((self.below > 0).sum())
            return count, count
        better, worse = (self.below > 0).any(1), (self.below > 0).any(0)
        return int((better | worse).sum()), int(min(better.sum(), worse.sum()))


def sum_pairs(drawn: Array, pairs: Array) -> Array:
    """Return the sums (B,) of pairs (A, A) between and within architectures that are drawn (B, A) times."""
    within = np.diag(pairs)
    between: Array = ((drawn @ (pairs - np.diag(within))) * drawn).sum(1)
    return between + drawn @ within


def count_pairs(score: Array, outcome: Array, architecture: Codes, fold: Codes, count: int) -> tuple[Array, Array]:
    """Count right pairs and all pairs, (A, A) each, for A = `count` architectures. Outcomes may be infinite."""
    right, pairs = np.zeros((count, count)), np.zeros((count, count))
    for part in np.unique(fold):
        here = (fold == part) & np.isfinite(score)
        s, y, a = score[here], outcome[here], architecture[here]
        higher = y[:, None] > y[None, :]
        good = np.where(s[:, None] > s[None, :], 1.0, np.where(s[:, None] == s[None, :], 0.5, 0.0)) * higher
        member = np.zeros((len(a), count))
        member[np.arange(len(a)), a] = 1.0
        right += member.T @ good @ member
        pairs += member.T @ higher @ member
    return right, pairs


def auc(score: Array, outcome: Array, architecture: Codes, fold: Codes, count: int) -> Sums:
    return Sums(*count_pairs(score, outcome, architecture, fold, count))


def somers_d(score: Array, outcome: Array, architecture: Codes, fold: Codes, count: int) -> Sums:
    return Sums(*count_pairs(score, outcome, architecture, fold, count), scale=2.0, shift=-1.0)


def explain_variance(predicted: Array, outcome: Array, usual: Array, architecture: Codes, count: int) -> Sums:
    """Return 1 - the sum of squared errors over that of `usual`, the mean of the training networks. Values below 0 are worse than this
    mean."""
    errors, spread, known = np.zeros(count), np.zeros(count), np.isfinite(predicted)
    np.add.at(errors, architecture[known], (outcome - predicted)[known] ** 2)
    np.add.at(spread, architecture[known], (outcome - usual)[known] ** 2)
    return Sums(errors, spread, scale=-1.0, shift=1.0)
