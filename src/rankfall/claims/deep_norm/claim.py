"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

import math
from typing import Any

from rankfall.claims.deep_norm.names import COSINE, DEEP, GRADIENT, KINDS, NAME
from rankfall.report.claim import Band, Claim, Decision, Read, Threshold, band, compare, evidence_rows, judge

RANGE = Threshold(1.0, "below", "decades between the largest and the smallest gradient of layers", DEEP)
APART = Threshold(0.95, "below", COSINE, DEEP)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    ranges = {kind: decades(evidence_rows(rows, GRADIENT, kind)) for kind in KINDS}
    ends = {kind: band(evidence_rows(rows, COSINE, kind).value) for kind in KINDS}
    depth = evidence_rows(rows, COSINE).x.max()
    text = f"With {depth:.0f} layers gradients of value maps span " + ", ".join(
        f"10^{ranges[kind].mean:.2f} between layers, cosine of tokens {ends[kind].mean:.3g} ({kind})" for kind in KINDS
    )
    found = {compare(ranges[DEEP], RANGE), compare(ends[DEEP], APART)}
    return judge(
        text + ".",
        ranges[DEEP],
        "more seeds",
        undecided="undecided" in found,
        holds=found == {"below"},
        in_part="below" in found,
        contradicted=True,
    )


def decades(rows: Any) -> Band:
    """Return the decades between the largest and the smallest gradient of a network."""
    return band(math.log10(one.value.max() / one.value.min()) for _, one in rows.groupby("seed"))


CLAIMS = (
    Claim(
        NAME,
        "Skips times (2 L)^(1/4) with norms after, and branches that start small, make a thousand layers stable.",
        "Wang et al.: DeepNet: scaling transformers to 1,000 layers, 2022",
        "https://arxiv.org/abs/2203.00555",
        ("abstract", "second-hand"),
        "1,000 layers of attention and ReLU MLP before training, width 32, 8 random tokens, squared distance from random targets, 5 "
        "seeds, float64. "
        "The source trains; constants are from memory.",
        "It holds before training if gradients of value maps in layers from first to last lie within one decade and the cosine of "
        "tokens after the last "
        "is below .95 (intervals); in part if one of both.",
        decide,
        shown=GRADIENT,
        thresholds=(RANGE, APART),
        place=59,
    ),
)
