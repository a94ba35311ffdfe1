"""Test of whether a mapped state is nearest to its own token's embedding among candidates (Brunner et al. 2020, section 4).

Candidates are the embeddings of the same sentence; those of the words that occur once in the sentence; or the embeddings of all words of
the vocabulary at the token's own position, so that position gives no hint. Repeated words are excluded from the second kind, as queries
and as candidates: without positions their embeddings are equal, and with positions, telling two equal words apart is a question of
position. Candidates that are equally near, as far as rounding can tell, share the token: if m nearest candidates include its own, it
counts 1 / m, the expected value of a random choice among them.

A rate has a confidence interval over sentences (`estimate_rate`).
Tokens of one sentence are not independent observations, since a sentence may be easy or hard as a whole. So the variance of the rate is
taken over sentences (the clustered variance of a ratio of sums). It gives the effective number of independent tokens, which enters
Wilson's interval; this stays within 0 and 1. The interval describes which sentences are tested.
"""

import math

import torch
from torch import Tensor

from rankfall.rank.powers import unit

DISTANCES = ("cosine", "l2")
ROUNDING = 64  # two candidates within this many rounding units of a distance's largest terms are equally near


def shares(mapped: Tensor, candidates: Tensor, own: Tensor, distance: str, allowed: Tensor | None = None) -> Tensor:
    """Return (..., Q): 1 where candidate `own` (..., Q) is nearest to a query, 1 / m where it is among m nearest, else 0.

    `mapped` (..., Q, D), `candidates` (..., C, D); `allowed` (..., C) restricts the candidates.
    """
    if distance == "cosine":  # scaling does not change the cosine; squares of small numbers would be zero
        mapped, candidates = unit(mapped, -1), unit(candidates, -1)
    product = mapped @ candidates.transpose(-1, -2)  # (..., Q, C)
    size = candidates.norm(dim=-1).unsqueeze(-2)  # (..., 1, C)
    length = mapped.norm(dim=-1, keepdim=True)  # (..., Q, 1)
    tiny = torch.finfo(mapped.dtype).tiny
    if distance == "cosine":
        near, largest = product / (size * length).clamp_min(tiny), torch.ones_like(length)
    else:  # |g - x|^2 = |g|^2 - 2 (g x - |x|^2 / 2): the bracket is largest for the nearest
        near, largest = product - size.square() / 2, (length * size + size.square()).amax(-1, keepdim=True)
    if allowed is not None:
        near = near.masked_fill(~allowed.unsqueeze(-2), -torch.inf)
    margin = ROUNDING * torch.finfo(mapped.dtype).eps * largest
    nearest = near >= near.amax(-1, keepdim=True) - margin  # (..., Q, C)
    return nearest.gather(-1, own.unsqueeze(-1)).squeeze(-1).double() / nearest.sum(-1)


def once(words: Tensor) -> Tensor:
    """Return which tokens (..., T) of a sentence are words that occur once in it."""
    return (words.unsqueeze(-1) == words.unsqueeze(-2)).sum(-1) == 1


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
