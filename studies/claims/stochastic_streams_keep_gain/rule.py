import math

from rankfall import Decision, Read, Threshold, evidence_rows, judge
from studies.claims.rules import by_parts
from studies.claims.stream_products.names import GAIN, STOCHASTIC

NEAR = Threshold(math.log10(1.6), "below", GAIN, "a gain of 1.6, as in the source")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    # One round does not give a doubly stochastic map. It is shown, but the claim is not about it.
    largest = {name: 10 ** float(evidence_rows(rows, GAIN, name).value.max()) for name in STOCHASTIC}
    listed = ", ".join(f"{value:.6f} ({name})" for name, value in largest.items())
    theirs = [value for name, value in largest.items() if "one round" not in name]
    text = f"The largest gain of products of up to {last:.0f} maps is {listed}."
    return judge(text, max(theirs), **by_parts(math.log10(value) < NEAR for value in theirs))
