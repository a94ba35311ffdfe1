"""Order of contraction of a layer, and how many rows of twelve equal tokens it can tell apart, for softmax, softmax with a gate behind it,
softpick and differential attention; and what differential attention keeps of the common row over its lambda.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from rankfall.claims.blocks import XAVIER
from rankfall.claims.rows import row
from rankfall.claims.stabilisers.names import DIFFERENTIAL, DISTINCT, GATE, LAMBDAS, LEFT, ORDER, SOFTPICK
from rankfall.claims.untrained import draw, make
from rankfall.design import Component
from rankfall.nets.network import Shape
from rankfall.position.draws import last_rows, random_networks
from rankfall.position.probe.measure import PROBED
from rankfall.position.rows import distinct
from rankfall.rank.orders.measure import ALONE
from rankfall.rank.orders.slopes import measure_slopes
from rankfall.rank.residual import relative_residual

if TYPE_CHECKING:
    from rankfall.design import Architecture
    from rankfall.measure.context import Context, Rows

TABLE = "evidence"
NEEDS = "nothing"
BUILDS = {
    "attention": ["multihead", "gated", "differential"],
    "embedding": ["linear", "token"],
    "init": ["published", "deepnorm"],
    "mask": ["none", "causal"],
    "norm": ["none", "layer"],
    "normaliser": ["softmax", "softpick"],
    "position": ["none", "alibi"],
    "residual": ["none", "add"],
}
SOFTMAX = "softmax"
KINDS: dict[str, dict[str, Any]] = {
    GATE: {"attention": Component("gated"), "normaliser": Component("softmax")},
    SOFTPICK: {"attention": Component("multihead"), "normaliser": Component("softpick")},
    DIFFERENTIAL: {"attention": Component("differential"), "normaliser": Component("softmax")},
}
PLAIN: dict[str, Any] = {"attention": Component("multihead"), "normaliser": Component("softmax")}
BY_MASK, BY_POSITION = ("none", "causal"), ("none", "alibi")


def stabilisers(context: Context, *, tokens: int = 12, width: int = 32, seeds: int = 8) -> Rows:
    rows: Rows = []
    for seed in range(seeds):
        plain = numbers(PLAIN, tokens, seed)
        for claim, parts in KINDS.items():
            for name, found in ((SOFTMAX, plain), (claim.removesuffix("_and_rank"), numbers(parts, tokens, seed))):
                rows += [row(claim, quantity, name, place, seed, *value) for quantity, place, value in found]
        rows += [
            row(DIFFERENTIAL, LEFT, "scores of deviation 1", share, seed, residual_left(share, seed, tokens, width))
            for share in LAMBDAS
        ]
    return rows


def numbers(parts: dict[str, Any], tokens: int, seed: int) -> list[tuple[str, int, tuple[float, str]]]:
    """Orders by mask, and, with the first seed, rows by position: these are of 8 draws of their own."""
    found = [
        (ORDER, place, order(replace(ALONE, mask=Component(mask), **parts), seed)) for place, mask in enumerate(BY_MASK)
    ]
    for place, position in enumerate(BY_POSITION if seed == 0 else ()):
        alone = replace(PROBED, position=Component(position), mask=Component("none"), sentinels=Component("none"))
        found.append((DISTINCT, place, (count_distinct(replace(alone, depth=1, **parts), tokens), "")))
    return found


def order(design: Architecture, seed: int) -> tuple[float, str]:
    """Of one draw of weights."""
    found = measure_slopes(design, biases=False, draws=1, tokens=6, seed=seed)[0]
    return (float("nan"), found["reason"]) if found["order"] is None else (found["order"], "")


def count_distinct(design: Architecture, tokens: int) -> int:
    """The most that one of 8 networks at random weights has: one is enough to show what can be."""
    networks = random_networks(design, Shape("tokens", "values", tokens, 1, 1), 8)
    return int(distinct(last_rows(networks, tokens)).rows.max())


@torch.no_grad()
def residual_left(share: float, seed: int, tokens: int, width: int) -> float:
    """Of differential attention at this lambda, without its norm, for tokens that share half of what they are."""
    network = make(
        [seed],
        tokens,
        attention={"name": "differential", "start": share, "norm": False},
        init=XAVIER,
        width=width,
    )
    network.blocks[0].attention.shares.zero_()  # then lambda is where it starts
    x = draw([seed], tokens, width, name=LEFT) + draw([seed], 1, width, name=f"{LEFT} common")
    return float(relative_residual(network.run(x.unsqueeze(1)), norm="frobenius"))
