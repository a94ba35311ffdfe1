"""Decide the claim `stochastic_streams_become_equal`."""

from rankfall import Decision, Read, Threshold, band, band_of, compare, evidence_rows, judge
from studies.claims.stream_products.names import APART, OUT
from studies.claims.trends import slopes

GONE = Threshold(-2.0, "below", APART, "a hundredth of what they did, after the last map")
THRESHOLDS = (GONE,)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(evidence_rows(rows, APART).x.max())
    names = sorted(evidence_rows(rows, APART).line.unique())
    ends = {name: band_of(rows, APART, name, last) for name in names}
    rates = {name: band(slopes(evidence_rows(rows, APART, name))) for name in names}
    order = band(slopes(evidence_rows(rows, OUT)))
    text = (
        f"After {last:.0f} maps streams differ by "
        + ", ".join(
            f"10^{ends[name].mean:.1f} of what they did ({name}, {10 ** rates[name].mean:.2f} a layer)"
            for name in names
        )
        + f". The order of contraction of streams is {order.mean:.3f}: exponential."
    )
    found = {compare(ends[name], GONE) for name in names}
    return judge(
        text,
        ends[names[-1]],
        "more layers or seeds",
        undecided="undecided" in found,
        holds=found == {"below"},
        in_part="below" in found,
        contradicted=True,
    )
