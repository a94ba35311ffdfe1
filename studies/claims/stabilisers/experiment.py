"""Measure the order of contraction of a layer, and how many rows of twelve equal tokens it distinguishes, for softmax and three other
mixers.

These are softmax followed by a gate, softpick, and differential attention. Also measured is the relative residual after differential
attention, by its lambda.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from rankfall import (
    ORDER_DESIGN,
    PROBED_DESIGN,
    Architecture,
    Component,
    Context,
    Evidence,
    Shape,
    distinct_rows,
    last_rows,
    measure_slopes,
    order_networks,
    order_states,
    position_networks,
    relative_residual,
)
from rankfall import evidence_row as row
from studies.claims.draws import draw
from studies.claims.parts import XAVIER
from studies.claims.stabilisers.names import DEAD, DIFFERENTIAL, DISTINCT, GATE, LAMBDAS, LEFT, ORDER, SOFTPICK
from studies.claims.untrained import make

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
TOKENS = 6  # for orders


def stabilisers(context: Context, *, tokens: int = 12, width: int = 32, seeds: int = 8) -> Evidence:
    plain = list(count_distinct(PLAIN, tokens, seeds))
    counted = {claim: list(count_distinct(parts, tokens, seeds)) for claim, parts in KINDS.items()}
    for seed in range(seeds):
        same = measure_orders(PLAIN, seed)
        for claim, parts in KINDS.items():
            name = claim.removesuffix("_and_rank")
            for line, values in ((SOFTMAX, same), (name, measure_orders(parts, seed))):
                for quantity, place, value in values:
                    yield row(claim, quantity, line, place, seed, *value)
            for line, by_place in ((SOFTMAX, plain), (name, counted[claim])):
                for place, counts in enumerate(by_place):
                    yield row(claim, DISTINCT, line, place, seed, counts[seed])
        for share in LAMBDAS:
            yield row(
                DIFFERENTIAL, LEFT, "scores of deviation 1", share, seed, residual_left(share, seed, tokens, width)
            )


def measure_orders(parts: dict[str, Any], seed: int) -> list[tuple[str, int, tuple[float, str]]]:
    """Return, by mask, the orders, and whether the layer is dead at its drawn weights."""
    rows: list[tuple[str, int, tuple[float, str]]] = []
    for place, mask in enumerate(BY_MASK):
        design = replace(ORDER_DESIGN, mask=Component(mask), **parts)
        rows += [(ORDER, place, order(design, seed)), (DEAD, place, (float(is_dead(design, seed)), ""))]
    return rows


@torch.no_grad()
def is_dead(design: Architecture, seed: int) -> bool:
    """Return whether a layer maps equal tokens to zero at drawn weights. Orders are then measured with changed queries (`wake`)."""
    network = order_networks(design, TOKENS, 1, False, seed)
    common = order_states(network, 1, TOKENS, seed).common  # (1, 1, 1, D)
    return not bool(network.blocks[0](common.expand(-1, -1, TOKENS, -1)).any())


def order(design: Architecture, seed: int) -> tuple[float, str]:
    """Return the order of contraction for one draw of weights."""
    fit = measure_slopes(design, biases=False, draws=1, tokens=TOKENS, seed=seed)[0]
    return (float("nan"), fit["reason"]) if fit["order"] is None else (fit["order"], "")


def count_distinct(parts: dict[str, Any], tokens: int, draws: int) -> Iterator[list[int]]:
    """Yield, by position, how many rows each network at random weights distinguishes."""
    for position in BY_POSITION:
        alone = replace(
            PROBED_DESIGN, position=Component(position), mask=Component("none"), sentinels=Component("none")
        )
        networks = position_networks(replace(alone, depth=1, **parts), Shape("tokens", "values", tokens, 1, 1), draws)
        yield distinct_rows(last_rows(networks, tokens)).rows.tolist()


@torch.no_grad()
def residual_left(share: float, seed: int, tokens: int, width: int) -> float:
    """Return the residual after differential attention at this lambda, without its norm, for tokens that share half of their content."""
    network = make(
        [seed],
        tokens,
        attention={"name": "differential", "start": share, "norm": False},
        init=XAVIER,
        width=width,
    )
    network.blocks[0].attention.shares.zero_()  # then lambda has its initial value
    x = draw([seed], tokens, width, name=LEFT) + draw([seed], 1, width, name=f"{LEFT} common")
    return float(relative_residual(network.run(x.unsqueeze(1)), norm="frobenius"))
