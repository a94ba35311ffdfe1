"""Decide the claim `free_streams_explode`."""

import math

from rankfall import Decision, Read, Threshold, band_of, compare, evidence_rows, judge
from studies.claims.stream_products.names import DEVIATIONS, GAIN, RATE

EXPLODES = Threshold(0.0, "above", RATE, "every d")
THRESHOLDS = (EXPLODES,)


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
    found = {compare(rates[d], EXPLODES) for d in DEVIATIONS}
    return judge(
        text + ".",
        rates[DEVIATIONS[0]],
        "more seeds, or longer products",
        holds=found == {"above"},
        undecided="undecided" in found,
        in_part="above" in found,
        contradicted=True,
    )
