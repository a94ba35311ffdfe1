from rankfall import Decision, Read, Threshold, band, band_of, evidence_rows, is_on, judge
from studies.claims.lazy_branches.names import CURVED
from studies.claims.rules import by_known_parts, slopes

WHOLE, ROOT = "1 / L", "1 / sqrt(L)"
# The argument gives 0 and -1/2.
STEADY = Threshold(-0.1, "above", "power of depth in what derivatives miss", f"branches times {WHOLE}")
FALLS = Threshold(-0.3, "below", "power of depth in what derivatives miss", f"branches times {ROOT}")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    powers = {line: band(slopes(evidence_rows(rows, CURVED, line), log=True)) for line in (WHOLE, ROOT)}
    first, last = float(rows.x.min()), float(rows.x.max())
    sentence = f"What derivatives miss of a branch's change, from {first:.0f} to {last:.0f} layers: " + "; ".join(
        f"{line}: {band_of(rows, CURVED, line, first).mean:.3f} to {band_of(rows, CURVED, line, last).mean:.3f}, as the power "
        f"{power} of depth"
        for line, power in powers.items()
    )
    parts = is_on(powers[WHOLE], STEADY), is_on(powers[ROOT], FALLS)
    return judge(sentence + ".", powers[ROOT], "more seeds, or deeper networks", **by_known_parts(parts))
