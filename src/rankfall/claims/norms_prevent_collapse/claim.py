"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from typing import Any

from rankfall.claims.answers import by_parts
from rankfall.report.claim import Claim, Decision, Read, Threshold, band_of, evidence_rows, is_on, judge

QUANTITY = "log10 of the spread of tokens, by layer"
MASKS = ("every token", "earlier tokens", "next neighbours")
# A thousandth of a unit, for tokens of length sqrt(D) = 8.
KEPT = Threshold(-3.0, "above", QUANTITY, "every mask, without rounding, after the last layer")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    exact = {mask: band_of(rows, QUANTITY, f"{mask}, without rounding", last) for mask in MASKS}
    single = {mask: evidence_rows(rows, QUANTITY, f"{mask}, float32", last).value.dropna() for mask in MASKS}
    worst = min(exact.values(), key=lambda one: one.mean)
    text = "; ".join(
        f"{mask}: 10^{exact[mask].mean:,.4g} without rounding, {_say(single[mask])} in float32" for mask in MASKS
    )
    text = f"Spread after {last:.0f} layers where a token sees: {text}."
    return judge(text, worst, "more seeds", **by_parts(is_on(one, KEPT) for one in exact.values()))


def _say(logs: Any) -> str:
    """Describe the spread of networks whose tokens are not all equal."""
    return f"10^{logs.mean():.3g}" if len(logs) else "0"


CLAIMS = (
    Claim(
        "norms_prevent_collapse",
        "A layer norm after each attention layer keeps tokens of a network with random weights apart: their spread does not go to zero.",
        "Wu, Ajorlou, Wang, Jegelka and Jadbabaie: On the role of attention masks and LayerNorm in transformers, 2024",
        "https://arxiv.org/abs/2405.18781",
        ("second-hand",),
        "Attention with a layer norm and nothing else, 24 layers of 4 heads, width 64, 24 random tokens, weights N(0, 0.02^2), 5 seeds.",
        "It holds for a mask if the spread without rounding stays above a thousandth after the last layer: what float32 shows may be its "
        "rounding, to which the norm gives the length of a token again. It holds if so for all three, which the source has, in part if "
        "for some.",
        decide,
        thresholds=(KEPT,),
        place=10,
        changed="A mask whose interval reaches across the bound leaves it undecided; it had counted as one that loses.",
    ),
)
