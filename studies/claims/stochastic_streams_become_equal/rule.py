from rankfall import Decision, Read, Threshold, band, band_of, evidence_rows, is_on, judge
from studies.claims.rules import by_known_parts, slopes
from studies.claims.stream_products.names import APART, OUT

GONE = Threshold(-2.0, "below", APART, "a hundredth of what they did, after the last map")


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
    parts = [is_on(end, GONE) for end in ends.values()]
    return judge(text, ends[names[-1]], "more layers or seeds", **by_known_parts(parts))
