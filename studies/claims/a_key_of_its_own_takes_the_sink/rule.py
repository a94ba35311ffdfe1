"""Decide the claim `a_key_of_its_own_takes_the_sink`."""

from rankfall import Decision, Read, Threshold, band, band_of, compare, evidence_rows, judge
from studies.claims.sinks_need_normalisation.names import DRAWN, TAKEN
from studies.claims.sinks_need_normalisation.reading import A_SINK, OWN_KEY, SINK, SOFTMAX

NEEDED = Threshold(SINK, "above", DRAWN, "softmax without the key; else undecided")
TAKES = Threshold(SINK, "above", TAKEN)
HALVED = Threshold(0.0, "below", "weight on the first token with the key less half of that without")
THRESHOLDS = (HALVED, TAKES, NEEDED)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    before, after = (evidence_rows(rows, DRAWN, line, last).value.to_numpy() for line in (SOFTMAX, OWN_KEY))
    taken, drawn = band_of(rows, TAKEN, OWN_KEY, last), band(after)
    fallen = compare(band(after - before / 2), HALVED)
    plain = band(before)
    said = (
        f"With a learned key without a value the first token has {drawn.mean:.2f} of the weight instead of {plain.mean:.2f}, and "
        f"the key {taken.mean:.2f}."
    )
    no_sink = compare(plain, NEEDED) != "above"
    answers = (fallen, compare(taken, TAKES))
    return judge(
        said,
        drawn,
        A_SINK if no_sink else "more seeds",
        undecided=no_sink or "undecided" in answers,
        holds=answers == ("below", "above"),
        contradicted=answers == ("above", "below"),
        in_part=True,
    )
