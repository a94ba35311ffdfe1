"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from rankfall.report.claim import (
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

SHARE = "share of energy in the first direction, by length of the first token"
ENTROPY = "entropy of the spectrum, by length of the first token"
RANK = "stable rank, by length of the first token"
DRAWN = "attention on the first token, by length of the first token"
LOW = Threshold(1.1, "below", RANK, "all tokens, at the greatest length")
KEPT = Threshold(0.9, "above", "stable rank without the first token at its greatest length over that at its least")
DOUBLED = Threshold(2.0, "above", "attention on the first token at its greatest length over that at its least")
# Zero, up to rounding.
BOUNDED = Threshold(-1e-9, "above", "share of energy less its bound, and the bound of the entropy less the entropy")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    short, long = float(rows.x.min()), float(rows.x.max())
    over = (
        evidence_rows(rows, SHARE, "measured").value.to_numpy() - evidence_rows(rows, SHARE, "bound").value.to_numpy()
    ).min()
    under = (
        evidence_rows(rows, ENTROPY, "bound").value.to_numpy()
        - evidence_rows(rows, ENTROPY, "measured").value.to_numpy()
    ).min()
    rank, first = band_of(rows, RANK, "all tokens", long), band_of(rows, RANK, "all tokens", short)
    without, alone = (evidence_rows(rows, RANK, "without the first token", x).value.to_numpy() for x in (long, short))
    before, after = (evidence_rows(rows, DRAWN, "last layer", x).value.to_numpy() for x in (short, long))
    said = (
        f"With a first token {long:.0f} times as long the stable rank falls from {first.mean:.2f} to {rank.mean:.4f}, at least as "
        "far as the bounds say "
        f"(share above its bound by {over:.2g} or more, entropy below by {under:.2g}); without the first token it is "
        f"{without.mean():.2f} ({alone.mean():.2f} before)."
    )
    extends = [
        Extension(
            f"attention of networks with random weights, which would double: on the long token it goes from {before.mean():.3f} to "
            f"{after.mean():.3f}",
            is_on(band(after / before), DOUBLED),
        )
    ]
    low, kept = is_on(rank, LOW), is_on(band(without / alone), KEPT)
    return judge(
        said,
        rank,
        "more seeds",
        extends,
        contradicted=over < BOUNDED or under < BOUNDED or low is False,
        undecided=None in (low, kept),
        holds=kept is True,
        in_part=True,
    )


CLAIMS = (
    Claim(
        "massive_token_forces_low_rank",
        "One token with a very long state forces the states of a text to low rank, by a bound that its length sets; without it there is "
        "none.",
        "Queipo-de-Llano and others: Attention sinks and compression valleys in LLMs are two sides of the same coin, 2025",
        "https://arxiv.org/abs/2510.06477",
        ("abstract",),
        "Causal pre-norm networks with random weights N(0, 1 / width), 4 layers of 4 heads, width 64, 32 random tokens, of which "
        "the first is made 1 to 300 "
        "times as long; the source looks at trained models, whose MLPs write the long state. That attention on it comes at once is said "
        "of these.",
        "It holds if the first direction's share of energy is never below, and the entropy of the spectrum never above, what the "
        "length of the first token "
        "allows; if the stable rank falls below 1.1 at the greatest length, and is kept (nine tenths) without the first token (intervals). "
        "In part if it is not kept; contradicted if a bound is broken, or the rank does not fall. Attention of random weights decides "
        "nothing.",
        decide,
        shown=SHARE,
        thresholds=(BOUNDED, LOW, KEPT, DOUBLED),
        place=620,
        changed="Attention in networks with random weights had decided too, so that it held only in part; the source says of trained "
        "models that attention and low rank come together. Intervals decide whether the rank is kept, where means did.",
    ),
)
