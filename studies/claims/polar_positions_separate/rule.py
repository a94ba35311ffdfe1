from rankfall import Decision, Extension, Read, Threshold, band, band_of, evidence_rows, is_on, judge
from studies.claims.polar_positions_separate.names import MIXED, POLAR, ROPE, SAME
from studies.claims.rules import by_parts, difference, true_of_all

MIXES = Threshold(0.5, "above", MIXED, f"{ROPE}, fastest pair")
APART = Threshold(1e-6, "below", MIXED, f"{POLAR}, every coordinate")
MORE = Threshold(
    0.2, "above", "contents whose score is highest at the commonest offset, PoPE less RoPE, angles at random"
)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    mixes = band_of(rows, MIXED, ROPE, 0)
    worst = band(evidence_rows(rows, MIXED, POLAR).groupby("seed").value.max())
    spreads = sorted(evidence_rows(rows, SAME).x.unique())
    gains = [difference(rows, SAME, POLAR, ROPE, x) for x in spreads]
    same = {line: band_of(rows, SAME, line, spreads[-1]) for line in (POLAR, ROPE)}
    sentence = (
        f"The second singular value of scores is {mixes} of the first for the fastest rotary pair, and at most {worst.mean:.1g} for polar "
        f"coordinates. {same[ROPE].mean:.0%} of contents score highest at the commonest offset with rotary positions, "
        f"{same[POLAR].mean:.0%} with polar ones."
    )
    parts = (true_of_all((is_on(mixes, MIXES), is_on(worst, APART))), is_on(gains[-1], MORE))
    zero = Extension(f"polar angles that start at zero: {gains[0].mean:+.0%} of contents", is_on(gains[0], MORE))
    return judge(sentence, gains[-1], "more seeds", [zero], **by_parts(parts))
