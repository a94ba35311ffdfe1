from typing import Any

from rankfall import Decision, Read, Threshold, band_of, evidence_rows, is_on, judge
from studies.claims.norms_prevent_collapse.names import QUANTITY
from studies.claims.parts import MASKS
from studies.claims.rules import by_parts

# A thousandth of a unit, for tokens of length sqrt(D) = 8.
KEPT = Threshold(-3.0, "above", QUANTITY, "every mask, without rounding, after the last layer")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    exact = {mask: band_of(rows, QUANTITY, f"{mask}, without rounding", last) for mask in MASKS}
    single = {mask: evidence_rows(rows, QUANTITY, f"{mask}, float32", last).value.dropna() for mask in MASKS}
    worst = min(exact.values(), key=lambda logs: logs.mean)
    text = "; ".join(
        f"{mask}: 10^{exact[mask].mean:,.4g} without rounding, {_say(single[mask])} in float32" for mask in MASKS
    )
    text = f"Spread after {last:.0f} layers, by what a token sees: {text}."
    return judge(text, worst, "more seeds", **by_parts(is_on(spread, KEPT) for spread in exact.values()))


def _say(logs: Any) -> str:
    """Describe the spread of networks whose tokens are not all equal."""
    return f"10^{logs.mean():.3g}" if len(logs) else "0"
