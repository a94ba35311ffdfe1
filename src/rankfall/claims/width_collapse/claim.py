"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from rankfall.claims.answers import by_parts, true_of_all
from rankfall.claims.trends import slopes
from rankfall.claims.width_collapse.names import CURED, FOURTH, LOST, MASKS, USUAL, WEIGHTS
from rankfall.report.claim import (
    Band,
    Claim,
    Decision,
    Extension,
    Read,
    Threshold,
    band,
    band_of,
    evidence_rows,
    is_on,
    judge,
)

ONE = Threshold(1.1, "below", FOURTH.format(1), "at the most tokens")
ONE_USUAL = Threshold(ONE, "below", USUAL.format(1), "at the most tokens")
GROWS = Threshold(0.8, "above", "power of the number of tokens in the stable rank of X X^T")
SAADA = "Nait Saada, Naderi and Tanner: Mind the gap: a spectral analysis of rank collapse and signal propagation in attention layers, 2025"
LINK = "https://arxiv.org/abs/2410.07799"


def decide_lost(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())

    def bands_at(kind: str, layer: int, mask: str) -> dict[str, Band]:
        return {one: band_of(rows, kind.format(layer), f"{one}, {mask}", last) for one in WEIGHTS}

    theirs, usual, causal = bands_at(FOURTH, 1, MASKS[0]), bands_at(USUAL, 1, MASKS[0]), bands_at(FOURTH, 1, MASKS[1])
    second = bands_at(USUAL, 2, MASKS[0])
    said = f"At {last:.0f} tokens, where all see all, the stable rank of X X^T after one layer is {_say(theirs)}."
    extends = (
        Extension(
            f"the usual stable rank, that of X itself: {_say(usual)} after one layer, {_say(second)} after two",
            true_of_all(is_on(one, ONE_USUAL) for one in usual.values()),
        ),
        Extension(f"causal masks: {_say(causal)}", true_of_all(is_on(one, ONE) for one in causal.values())),
    )
    parts = [is_on(one, ONE) for one in theirs.values()]
    return judge(said, theirs[WEIGHTS[0]], "more tokens or seeds", extends, **by_parts(parts))


def decide_cured(read: Read) -> Decision:
    rows = read("evidence")
    all_see, causal = (
        {one: band(slopes(evidence_rows(rows, FOURTH.format(1), f"{one}, {mask}"), log=True)) for one in WEIGHTS}
        for mask in MASKS
    )
    said = f"Without the mean weight, where all see all, the stable rank of X X^T grows like {_say_powers(all_see)}."
    extends = (
        Extension(f"causal masks: {_say_powers(causal)}", true_of_all(is_on(one, GROWS) for one in causal.values())),
    )
    parts = [is_on(one, GROWS) for one in all_see.values()]
    return judge(said, all_see[WEIGHTS[0]], "more tokens or seeds", extends, **by_parts(parts))


def _say_powers(found: dict[str, Band]) -> str:
    return " and ".join(f"T^{one.mean:.2f} ({name})" for name, one in found.items())


def _say(found: dict[str, Band]) -> str:
    return " and ".join(f"{one.mean:.3g} ({name})" for name, one in found.items())


SETTING = (
    "Orthonormal inputs of width T, 32 to 512 tokens, a value map N(0, 1/d), weights a softmax of N(0, log 2) numbers or of queries "
    "and keys by "
    "random maps, 15 seeds. The source: 20 to 150 tokens, all see all; causal masks are ours."
)
DEFECTS = (
    "model.py, lines 100 to 105: with a skip connection and no MLP, the identity that stands for the MLP is added to its own input, "
    "so that "
    "every layer of 'A + skip' doubles the state; 'A + upscaled skip' is spared by the precedence of `and` over `or`. Stable ranks do not "
    "notice a factor. gradients_norms.py, lines 79 to 95: the product that stands for the layers below takes weights without their "
    "mean taken off "
    "also where the network's has been (ConstantAttention.py, line 51), and no skip."
)

CLAIMS = (
    Claim(
        LOST,
        "Attention loses rank in width: as sequences get longer the stable rank of tokens after a single layer goes to 1.",
        SAADA,
        LINK,
        ("code",),
        SETTING,
        "It holds if at 512 tokens, where all see all, the stable rank of X X^T lies below 1.1 for both kinds of weights (whole "
        "intervals), in part if for one. A tenth is what is left of order 1/T and more. The usual stable rank and causal masks are "
        "ours and decide nothing.",
        decide_lost,
        defects=DEFECTS,
        thresholds=(ONE, ONE_USUAL),
        place=42,
        shown=FOURTH.format(1),
        changed="Causal masks and the usual stable rank of X, which the source has not, do not decide any more: with them it held "
        "only in part. 15 seeds instead of 5.",
    ),
    Claim(
        CURED,
        "Taking 1/T off attention weights cures the loss of rank in width.",
        SAADA,
        LINK,
        ("code",),
        SETTING + " With a causal mask 1/n_i is taken off, n_i the number of tokens that i sees.",
        "It holds if the stable rank of X X^T after one layer grows like T^p with p above .8 (full rank keeps a share of T, p = 1) "
        "for both kinds of weights where all see all, in part if for one. Causal masks are ours and decide nothing.",
        decide_cured,
        thresholds=(GROWS,),
        place=43,
        shown=FOURTH.format(1),
        changed="Causal masks, which the source has not, do not decide any more: with them it held only in part. 15 seeds instead of 5.",
    ),
)
