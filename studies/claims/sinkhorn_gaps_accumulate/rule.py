import math

from rankfall import Decision, Extension, Read, Threshold, band_of, change_of, is_on, judge
from studies.claims.rules import by_parts
from studies.claims.sinkhorn_gaps_accumulate.names import EXACT, GAP, name_line

WIDE, NARROW = name_line(8.0, 20), name_line(1.0, 20)
LEFT = Threshold(-2.0, "above", GAP, f"{WIDE}: a hundredth, after one map")
GROWS = Threshold(math.log10(2), "above", "decades by which the gap grows from the first map to the last")
NONE = Threshold(-12.0, "below", GAP, f"{EXACT}, after the last map")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    first, grown = band_of(rows, GAP, WIDE, 1), change_of(rows, GAP, WIDE, 1, last)
    early = change_of(rows, GAP, WIDE, 1, 8)
    exact = band_of(rows, GAP, EXACT, last)
    small = band_of(rows, GAP, NARROW, last)
    sentence = (
        f"With 20 rounds and scores of deviation 8, a column sum of one map is off by 10^{first.mean:.1f}, and that of {last:.0f} maps by "
        f"{10**grown.mean:.3g} times as much, {10**early.mean:.3g} times after eight; with sums of permutations by 10^{exact.mean:.1f}."
    )
    steps = ", ".join(
        f"10^{band_of(rows, GAP, name_line(width, 20), 1).mean:.1f} at deviation {width:g}" for width in (1.0, 4.0, 8.0)
    )
    widths = f"one map is off by {steps}"
    parts = (is_on(first, LEFT), is_on(grown, GROWS), is_on(exact, NONE))
    narrow = Extension(f"scores of deviation 1: 10^{small.mean:.1f} after {last:.0f} maps", is_on(small, LEFT))
    return judge(
        sentence, grown, f"the width of the source's scores, which decides: {widths}", [narrow], **by_parts(parts)
    )
