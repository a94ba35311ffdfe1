"""Decide the claim `layers_are_lazy_unless_branches_fall_as_depth`."""

from rankfall import Decision, Read, Threshold, band, band_of, compare, evidence_rows, judge
from studies.claims.lazy_branches.names import CURVED
from studies.claims.trends import slopes

WHOLE, ROOT = "1 / L", "1 / sqrt(L)"
# The argument gives 0 and -1/2.
STEADY = Threshold(-0.1, "above", "power of depth in what derivatives miss", f"branches times {WHOLE}")
FALLS = Threshold(-0.3, "below", "power of depth in what derivatives miss", f"branches times {ROOT}")
THRESHOLDS = (STEADY, FALLS)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    powers = {line: band(slopes(evidence_rows(rows, CURVED, line), log=True)) for line in (WHOLE, ROOT)}
    first, last = float(rows.x.min()), float(rows.x.max())
    said = f"What derivatives miss of a branch's change, from {first:.0f} to {last:.0f} layers: " + "; ".join(
        f"{line}: {band_of(rows, CURVED, line, first).mean:.3f} to {band_of(rows, CURVED, line, last).mean:.3f}, as the power "
        f"{power} of depth"
        for line, power in powers.items()
    )
    found = compare(powers[WHOLE], STEADY), compare(powers[ROOT], FALLS)
    return judge(
        said + ".",
        powers[ROOT],
        "more seeds, or deeper networks",
        undecided="undecided" in found,
        holds=found == ("above", "below"),
        contradicted=found == ("below", "above"),
        in_part=True,
    )
