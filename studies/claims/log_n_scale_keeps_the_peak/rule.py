from rankfall import Decision, Extension, Read, Threshold, band_of, is_on, judge
from studies.claims.length_and_scale.names import LARGEST
from studies.claims.rules import by_parts, true_of_all

SCALED = "softmax of scores times 0.43 log n"
THEIRS = 5.0  # the gap of the source's example
GAPS = (1.0, 2.0, 3.0, THEIRS)
KEPT = Threshold(0.9, "above", LARGEST, f"scaled, a gap of {THEIRS:g}, at the most scores")
FADED = Threshold(0.1, "below", LARGEST, f"softmax, a gap of {THEIRS:g}, at the most scores")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    most = float(rows.x.max())
    plain = {gap: band_of(rows, LARGEST, f"softmax, gap {gap:g}", most) for gap in GAPS}
    scaled = {gap: band_of(rows, LARGEST, f"{SCALED}, gap {gap:g}", most) for gap in GAPS}
    texts = {gap: f"{plain[gap].mean:.2g} and {scaled[gap].mean:.3g}" for gap in GAPS}
    sentence = f"At a gap of {THEIRS:g} the largest of {most:,.0f} weights is, with softmax and with 0.43 log n, {texts[THEIRS]}."
    parts = {gap: (is_on(plain[gap], FADED), is_on(scaled[gap], KEPT)) for gap in GAPS}
    extends = [
        Extension(f"a gap of {gap:g}, where 1 / 0.43 = {1 / 0.43:.2f} is needed: {texts[gap]}", true_of_all(parts[gap]))
        for gap in GAPS
        if gap != THEIRS
    ]
    return judge(sentence, scaled[THEIRS], "more scores", extends, **by_parts(parts[THEIRS]))
