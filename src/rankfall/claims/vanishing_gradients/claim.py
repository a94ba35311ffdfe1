"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from rankfall.claims.trends import slopes
from rankfall.claims.vanishing_gradients.names import GRADIENT, NAME, WEIGHTS
from rankfall.report.claim import Claim, Decision, Read, Threshold, band, compare, evidence_rows, judge

VANISHES = Threshold(0.5, "above", "power of what tokens differ by in a gradient", "queries and keys")
STAYS = Threshold(0.1, "below", "power of what tokens differ by in a gradient", "the other weights")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    powers = {part: band(slopes(evidence_rows(rows, GRADIENT, part), log=True)) for part in WEIGHTS}
    text = (
        "Where tokens differ by e, gradients go like "
        + ", ".join(f"e^{one.mean:.2f} ({part})" for part, one in powers.items())
        + "."
    )
    scores = {compare(powers[part], VANISHES) for part in ("queries", "keys")}
    others = {compare(one, STAYS) for part, one in powers.items() if part not in ("queries", "keys")}
    return judge(
        text,
        powers["queries"],
        "smaller differences between tokens",
        undecided="undecided" in scores | others,
        holds=(scores, others) == ({"above"}, {"below"}),
        in_part="above" in scores,
        contradicted=True,
    )


CLAIMS = (
    Claim(
        NAME,
        "Where rank has collapsed, gradients of query and key maps vanish, and those of other weights do not.",
        "Noci et al.: Signal propagation in transformers, 2022",
        "https://arxiv.org/abs/2206.03126",
        ("abstract", "second-hand"),
        "One block of attention and GELU MLP with skips and norms after, Xavier's start, 8 tokens 1 x^T + e R, e from 1e-1 to 1e-5, "
        "squared "
        "distance from random targets, 5 seeds, float64.",
        "Gradients vanish if they go like e^p with p above .5, and do not if p is below .1; it holds if queries and keys vanish and "
        "values, "
        "output and MLP do not, in part if others vanish too, or one of both alone does. The number is p of queries.",
        decide,
        thresholds=(VANISHES, STAYS),
        place=40,
        changed="Queries or keys alone that vanish count in part; they had counted as contradicted. The verdict is the same.",
    ),
)
