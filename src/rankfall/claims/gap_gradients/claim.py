"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

import math
from typing import Any

from rankfall.claims.gap_gradients.names import GRADIENT, KINDS, NAME
from rankfall.claims.trends import slope
from rankfall.claims.width_collapse.claim import DEFECTS, LINK, SAADA
from rankfall.report.claim import Band, Claim, Decision, Read, Threshold, band, compare, evidence_rows, judge

# 2.6 times in ten layers.
GROWS = Threshold(1.1, "split at", "factor a layer of the gradient", "above it as they are, below it with the mean off")


def decide(read: Read) -> Decision:
    rows = evidence_rows(read("evidence"), GRADIENT)
    factors = {kind: growth(rows[(rows.line == kind) & (rows.x > 1)]) for kind in KINDS}
    text = (
        "A layer multiplies the gradient by "
        + ", ".join(f"{one.mean:.2f} ({kind})" for kind, one in factors.items())
        + "."
    )
    plain, skip = compare(factors["A"], GROWS), compare(factors["A + skip"], GROWS)
    cured = [compare(factors[kind], GROWS) for kind in ("A, mean off", "A + skip, mean off")]
    return judge(
        text,
        factors["A + skip"],
        "more seeds or layers",
        undecided="undecided" in (plain, skip, *cured),
        contradicted="above" not in (plain, skip),
        holds=plain == skip == "above" and set(cured) == {"below"},
        in_part=True,
    )


def growth(rows: Any) -> Band:
    """Return the factor per layer, from the slope of the logarithm."""
    return band(math.exp(slope(one.x, one.value.map(math.log))) for _, one in rows.groupby("seed"))


CLAIMS = (
    Claim(
        NAME,
        "Because rows of attention have a common part, gradients explode with depth; with 1/T taken off they do not.",
        SAADA,
        LINK,
        ("code",),
        "Fixed weights, a softmax of N(0, log 2) numbers, value maps N(0, 1/d), 64 orthonormal tokens of width 64, up to 10 layers, "
        "gradient by "
        "the first value map, 5 seeds.",
        "A gradient explodes if a layer multiplies it by more than 1.1 (interval over seeds, layers 2 to 10). It holds if it explodes "
        "with and "
        "without skip connections, and with 1/T taken off in neither case; in part if in some. The number is the factor with skips as "
        "they are.",
        decide,
        defects=DEFECTS,
        thresholds=(GROWS,),
        place=44,
    ),
)
