from rankfall import Decision, Read, Threshold, band, band_of, evidence_rows, is_on, judge
from studies.claims.polar_positions_index.names import POLAR, RIGHT, ROPE

MORE = Threshold(0.0, "above", "right answers with PoPE less those with RoPE, after training")
FAR = Threshold(0.2, "above", "right answers with PoPE less those with RoPE, after training, for `far superior`")
LEARNED = Threshold(
    0.3, "above", RIGHT, "the better of both after training, twice what a letter of the text gets; else undecided"
)
THRESHOLDS = (MORE, FAR, LEARNED)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    polar, rope = (evidence_rows(rows, RIGHT, line, last).value.to_numpy() for line in (POLAR, ROPE))
    bands = {line: band_of(rows, RIGHT, line, last) for line in (POLAR, ROPE)}
    more = band(polar - rope)
    texts = {line: ", ".join(f"{one:.0%}" for one in found) for line, found in ((POLAR, polar), (ROPE, rope))}
    said = f"Right answers, by seed: PoPE {texts[POLAR]}; RoPE {texts[ROPE]}. The difference is {more}."
    learned = any(is_on(one, LEARNED) is True for one in bands.values())
    answer = is_on(more, MORE)
    return judge(
        said,
        more,
        "models that have learned the task: more steps" if not learned else "more seeds or steps",
        undecided=not learned or answer is None,
        holds=is_on(more, FAR) is True,
        in_part=answer is True,
        contradicted=answer is False,
    )
