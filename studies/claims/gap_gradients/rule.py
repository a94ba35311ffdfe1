import math
from typing import Any

from rankfall import Band, Decision, Read, Threshold, band, compare, evidence_rows, judge
from studies.claims.gap_gradients.names import GRADIENT, KINDS
from studies.claims.parts import slope

# 2.6 times in ten layers.
GROWS = Threshold(1.1, "split at", "factor a layer of the gradient", "above it as they are, below it with the mean off")


def decide(read: Read) -> Decision:
    rows = evidence_rows(read("evidence"), GRADIENT)
    factors = {kind: growth(rows[(rows.line == kind) & (rows.x > 1)]) for kind in KINDS}
    text = (
        "A layer multiplies the gradient by "
        + ", ".join(f"{factor.mean:.2f} ({kind})" for kind, factor in factors.items())
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
    return band(math.exp(slope(group.x, group.value.map(math.log))) for _, group in rows.groupby("seed"))
