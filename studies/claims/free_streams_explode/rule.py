import math

from rankfall import Decision, Read, Threshold, band_of, evidence_rows, is_on, judge
from studies.claims.rules import by_known_parts
from studies.claims.stream_products.names import DEVIATIONS, GAIN, RATE

EXPLODES = Threshold(0.0, "above", RATE, "every d")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(evidence_rows(rows, GAIN).x.max())
    rates = {d: band_of(rows, RATE, "1 + d N", d) for d in DEVIATIONS}
    ends = {d: band_of(rows, GAIN, f"1 + {d:g} N", last) for d in DEVIATIONS}
    text = (
        "In the long run a map 1 + d N multiplies the product by 10^x, x = "
        + ", ".join(f"{rates[d].mean:.2g} at d = {d:g}" for d in DEVIATIONS)
        + f": at d = {DEVIATIONS[0]:g} it doubles in {math.log10(2) / rates[DEVIATIONS[0]].mean:,.0f} maps."
        + f" After {last:.0f} maps the gain is "
        + ", ".join(f"10^{ends[d].mean:.2f} at d = {d:g}" for d in DEVIATIONS)
    )
    parts = [is_on(rate, EXPLODES) for rate in rates.values()]
    return judge(text + ".", rates[DEVIATIONS[0]], "more seeds, or longer products", **by_known_parts(parts))
