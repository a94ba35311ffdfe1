"""Lengthen the first token of a text, and measure the share of the states' energy in their first direction, in a causal network.

It is compared with the bound (c + a) / (c + 1), with c the energy of the first token over that of the others and a their mean squared
cosine with it, weighted by energy. Also measured are the entropy of the spectrum with its bound, the stable rank with and without the first
token, and the attention on it.
"""

import math

import torch
from torch import Tensor

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.draws import draw
from studies.claims.massive_token.names import DRAWN, ENTROPY, RANK, SHARE
from studies.claims.parts import PRE_NORM
from studies.claims.untrained import make

BUILDS = {"mask": ["causal"], "norm": ["layer"], "residual": ["add"]}
NAME = "massive_token_forces_low_rank"
LONGER = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)


def massive_token(
    context: Context, *, depth: int = 4, tokens: int = 32, width: int = 64, heads: int = 4, seeds: int = 5
) -> Evidence:
    init = {"name": "normal", "deviation": width**-0.5}
    for seed in range(seeds):
        x = draw([seed], 1, tokens, width, name=NAME)
        network = make([seed], tokens, **PRE_NORM, mask="causal", init=init, depth=depth, heads=heads, width=width)
        for length in LONGER:
            text = x.clone()  # (1, 1, T, D)
            text[..., 0, :] *= length
            states = list(network.layers(text))
            last = states[-1][0, 0]
            share, bound = first_share(last), share_bound(last)
            read = network.blocks[-1].norm1(states[-2])
            drawn = float(network.blocks[-1].attention.weights(read)[0, 0, :, 1:, 0].mean())
            yield row(NAME, SHARE, "measured", length, seed, share)
            yield row(NAME, SHARE, "bound", length, seed, bound)
            yield row(NAME, SHARE, "without the first token", length, seed, first_share(last[1:]))
            yield row(NAME, ENTROPY, "measured", length, seed, entropy(last))
            yield row(NAME, ENTROPY, "bound", length, seed, entropy_bound(bound, min(last.shape)))
            yield row(NAME, RANK, "all tokens", length, seed, 1 / share)
            yield row(NAME, RANK, "without the first token", length, seed, 1 / first_share(last[1:]))
            yield row(NAME, DRAWN, "last layer", length, seed, drawn)


def first_share(x: Tensor) -> float:
    """Return s_1^2 / sum s^2 of states (T, D)."""
    squares = torch.linalg.svdvals(x).square()
    return float(squares[0] / squares.sum())


def share_bound(x: Tensor) -> float:
    """Return a lower bound of the first share: s_1^2 is at least |X u|^2 for the unit vector u along the first token."""
    energy = x.square().sum(-1)
    others = energy[1:].sum()
    along = (x[1:] @ x[0]).square().sum() / energy[0] / others
    return float((energy[0] / others + along) / (energy[0] / others + 1))


def entropy(x: Tensor) -> float:
    """Return the entropy of shares of energy, in nats."""
    squares = torch.linalg.svdvals(x).square()
    return float(torch.special.entr(squares / squares.sum()).sum())


def entropy_bound(share: float, rank: int) -> float:
    """Return the largest entropy of `rank` shares of which the first is at least `share`."""
    if share <= 1 / rank:
        return math.log(rank)
    remaining = 1 - share
    spread = remaining * math.log((rank - 1) / remaining) if remaining > 0 else 0.0
    return -share * math.log(share) + spread
