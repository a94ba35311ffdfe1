"""Influence of each place on the last token of untrained causal stacks, and the accuracy of closed forms: uniform averaging ((1 - a) 1 + a
C)^H, and the same in squares (`identity/influence/averaging.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankfall.claims.rows import row
from rankfall.identity.influence.averaging import agreement, average_uniformly, in_squares
from rankfall.identity.influence.measure import best, measure_shares, stack

if TYPE_CHECKING:
    from rankfall.measure.context import Context, Rows

TABLE = "evidence"
NEEDS = "nothing"
BUILDS = {
    "init": ["published"],
    "mask": ["causal"],
    "mlp": ["gelu", "none"],
    "norm": ["layer", "none"],
    "position": ["none", "rope"],
    "residual": ["add", "convex"],
}
NAME = "lost_in_the_middle_at_birth"
SHARE = "share of influence, by place"
RANKS = "rank correlation with the network, by layers"
OFF = "total variation distance from the network, by layers"


def lost_in_the_middle_at_birth(
    context: Context,
    *,
    length: int = 32,
    depth: int = 24,
    alpha: float = 0.3,
    width: int = 32,
    heads: int = 4,
    seeds: int = 5,
    samples: int = 8,
    directions: int = 4,
) -> Rows:
    rows: Rows = []
    for seed in range(seeds):
        for position in ("none", "rope"):
            for kind, given in (("attention", alpha), ("transformer", None)):
                network = stack(depth, given, position, width, heads, length, seed)
                (shares,) = measure_shares(network, [depth], length, seed, samples, directions)
                weight = best(shares, depth) if given is None else given
                line = f"{kind}, {'no positions' if position == 'none' else 'RoPE'}"
                rows += [row(NAME, SHARE, line, place, seed, value) for place, value in enumerate(shares, 1)]
                forms = {"averaging": average_uniformly(length, depth, weight)}
                if given is not None:  # for transformers `a` is fitted to averaging
                    forms["in squares"] = in_squares(length, depth, weight)
                for form, found in forms.items():
                    ranks, off = agreement(shares, found)
                    rows.append(row(NAME, RANKS, f"{line}, {form}", depth, seed, ranks))
                    rows.append(row(NAME, OFF, f"{line}, {form}", depth, seed, off))
                    if kind == "attention" and position == "none":
                        rows += [row(NAME, SHARE, form, place, seed, value) for place, value in enumerate(found, 1)]
    return rows
