"""Decide the claim `clusters_follow_values`."""

from rankfall import Decision, Read, Threshold, band_of, compare, judge
from studies.claims.clusters.reading import GROUPS, ONE

VALUES = ("V = 1", "V = -1", "V of rank 1", "V = diag(1, 1, -1)")
MANY = Threshold(16.0, "above", GROUPS, "V = -1, in the end")  # half of the tokens
THRESHOLDS = (ONE, MANY)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    found = {line: band_of(rows, GROUPS, line, last) for line in VALUES}
    said = f"Groups of {band_of(rows, GROUPS, 'V = 1', 0.0).mean:.0f} tokens at time {last:g}: " + ", ".join(
        f"{line}: {one}" for line, one in found.items()
    )
    one, none = compare(found["V = 1"], ONE), compare(found["V = -1"], MANY)
    right = [one == "below", none == "above"]
    open_ = "undecided" in (one, none)
    wants = "more time, or more seeds"
    number = found["V = 1"]
    return judge(said + ".", number, wants, undecided=open_, holds=all(right), in_part=any(right), contradicted=True)
