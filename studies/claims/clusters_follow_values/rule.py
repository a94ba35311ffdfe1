from rankfall import Decision, Read, Threshold, band_of, is_on, judge
from studies.claims.clusters.names import GROUPS
from studies.claims.rules import by_known_parts

VALUES = ("V = 1", "V = -1", "V of rank 1", "V = diag(1, 1, -1)")
ONE = Threshold(1.5, "below", GROUPS, "V = 1, in the end")
MANY = Threshold(16.0, "above", GROUPS, "V = -1, in the end")  # half of the tokens


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    counts = {line: band_of(rows, GROUPS, line, last) for line in VALUES}
    sentence = f"Groups of {band_of(rows, GROUPS, 'V = 1', 0.0).mean:.0f} tokens at time {last:g}: " + ", ".join(
        f"{line}: {count}" for line, count in counts.items()
    )
    parts = is_on(counts["V = 1"], ONE), is_on(counts["V = -1"], MANY)
    return judge(sentence + ".", counts["V = 1"], "more time, or more seeds", **by_known_parts(parts))
