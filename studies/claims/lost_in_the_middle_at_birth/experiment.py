"""Measure the influence of each place on the last token of untrained causal stacks, and how well closed forms predict it.

The forms are uniform averaging, ((1 - a) 1 + a C)^H, and the same in squares (`identity/influence/averaging.py`).
"""

from rankfall import (
    Context,
    Evidence,
    agreement,
    average_uniformly,
    best_gains,
    in_squares,
    influence_shares,
    influence_stack,
)
from rankfall import evidence_row as row
from studies.claims.lost_in_the_middle_at_birth.names import OFF, RANKS

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
) -> Evidence:
    for seed in range(seeds):
        for position in ("none", "rope"):
            for kind, known in (("attention", alpha), ("transformer", None)):
                network = influence_stack(depth, known, position, width, heads, length, seed)
                (shares,) = influence_shares(network, [depth], length, seed, samples, directions)
                weight = best_gains(shares, depth) if known is None else known
                line = f"{kind}, {'no positions' if position == 'none' else 'RoPE'}"
                for place, value in enumerate(shares, 1):
                    yield row(NAME, SHARE, line, place, seed, value)
                forms = {"averaging": average_uniformly(length, depth, weight)}
                if known is not None:  # for transformers `a` is fitted to averaging
                    forms["in squares"] = in_squares(length, depth, weight)
                for form, shares_of_form in forms.items():
                    ranks, off = agreement(shares, shares_of_form)
                    yield row(NAME, RANKS, f"{line}, {form}", depth, seed, ranks)
                    yield row(NAME, OFF, f"{line}, {form}", depth, seed, off)
                    if kind == "attention" and position == "none":
                        for place, value in enumerate(shares_of_form, 1):
                            yield row(NAME, SHARE, form, place, seed, value)
