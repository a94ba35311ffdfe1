"""Who says it, and what decides it."""

from __future__ import annotations

from rankfall.claims.trends import slopes
from rankfall.claims.width_collapse.names import CURED, FOURTH, LOST, MASKS, USUAL, WEIGHTS
from rankfall.report.claim import Band, Claim, Decision, Read, Threshold, band, band_of, compare, judge, of

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
    text = (
        f"At {last:.0f} tokens where all see all, the stable rank of X X^T after one layer is {_say(theirs)}, that of X itself "
        f"{_say(usual)} "
        f"({_say(second)} after two); where tokens see earlier ones that of X X^T is {_say(causal)}."
    )
    of_theirs, of_causal = ({compare(one, ONE) for one in group.values()} for group in (theirs, causal))
    of_usual = {compare(one, ONE_USUAL) for one in usual.values()}
    return judge(
        text,
        theirs[WEIGHTS[0]],
        "more tokens or seeds",
        undecided="undecided" in of_theirs,
        contradicted="above" in of_theirs,
        holds=of_usual | of_causal == {"below"},
        in_part=True,
    )


def decide_cured(read: Read) -> Decision:
    rows = read("evidence")
    powers = {
        (weights, mask): band(slopes(of(rows, FOURTH.format(1), f"{weights}, {mask}"), log=True))
        for weights in WEIGHTS
        for mask in MASKS
    }
    text = "Without the mean weight the stable rank of X X^T grows like " + ", ".join(
        f"T^{one.mean:.2f} ({weights}, {mask})" for (weights, mask), one in powers.items()
    )
    all_see, causal = ({compare(powers[one, mask], GROWS) for one in WEIGHTS} for mask in MASKS)
    return judge(
        text + ".",
        powers[WEIGHTS[0], MASKS[0]],
        "more tokens or seeds",
        undecided="undecided" in all_see | causal,
        contradicted=all_see != {"above"},
        holds=causal == {"above"},
        in_part=True,
    )


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
        "It holds if at 512 tokens intervals lie below 1.1 for both kinds of weights, for the stable rank of X X^T (the source's) and "
        "the usual "
        "one of X, and with causal masks too; in part if only for the source's own rank where all see all. A tenth is what is left of "
        "order 1/T "
        "and more.",
        decide_lost,
        defects=DEFECTS,
        thresholds=(ONE, ONE_USUAL),
        place=42,
        shown=FOURTH.format(1),
        changed="15 seeds instead of 5.",
    ),
    Claim(
        CURED,
        "Taking 1/T off attention weights cures the loss of rank in width.",
        SAADA,
        LINK,
        ("code",),
        SETTING + " With a causal mask 1/n_i is taken off, n_i the number of tokens that i sees.",
        "It holds if the stable rank of X X^T after one layer grows like T^p with p above .8 (full rank keeps a share of T, p = 1) "
        "for both kinds "
        "of weights, where all see all and with causal masks; in part if only where all see all.",
        decide_cured,
        thresholds=(GROWS,),
        place=43,
        shown=FOURTH.format(1),
        changed="15 seeds instead of 5.",
    ),
)
