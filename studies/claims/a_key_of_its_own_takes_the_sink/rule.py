from rankfall import Decision, Read, Threshold, band, band_of, evidence_rows, is_on, judge
from studies.claims.rules import by_known_parts
from studies.claims.sinks_need_normalisation.names import DRAWN, OWN_KEY, SOFTMAX, TAKEN
from studies.claims.sinks_need_normalisation.rule import A_SINK, SINK

NEEDED = Threshold(SINK, "above", DRAWN, "softmax without the key; else undecided")
TAKES = Threshold(SINK, "above", TAKEN)
HALVED = Threshold(0.0, "below", "weight on the first token with the key less half of that without")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    before, after = (evidence_rows(rows, DRAWN, line, last).value.to_numpy() for line in (SOFTMAX, OWN_KEY))
    taken, drawn = band_of(rows, TAKEN, OWN_KEY, last), band(after)
    plain = band(before)
    sentence = (
        f"With a learned key without a value the first token has {drawn.mean:.2f} of the weight instead of {plain.mean:.2f}, and "
        f"the key {taken.mean:.2f}."
    )
    if not is_on(plain, NEEDED):
        return judge(sentence, drawn, A_SINK)
    parts = is_on(band(after - before / 2), HALVED), is_on(taken, TAKES)
    return judge(sentence, drawn, "more seeds", **by_known_parts(parts))
