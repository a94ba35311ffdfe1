import math
from typing import Any

from rankfall import Band, Decision, Read, Threshold, band, evidence_rows, is_on, judge
from studies.claims.deep_norm.names import COSINE, DEEP, GRADIENT, KINDS
from studies.claims.rules import by_known_parts

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
    parts = is_on(ranges[DEEP], RANGE), is_on(ends[DEEP], APART)
    return judge(text + ".", ranges[DEEP], "more seeds", **by_known_parts(parts))


def decades(rows: Any) -> Band:
    """Return the decades between the largest and the smallest gradient of a network."""
    return band(math.log10(group.value.max() / group.value.min()) for _, group in rows.groupby("seed"))
