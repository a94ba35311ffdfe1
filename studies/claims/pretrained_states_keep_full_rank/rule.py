from rankfall import DataFrame, Decision, Extension, Threshold, band_of, change_of, evidence_rows, is_on, judge
from studies.claims.pretrained_encoder.names import ALL, COSINE, PARTS, SHARE, SMALLEST
from studies.claims.pretrained_encoder.reading import where_measured
from studies.claims.rules import true_of_all

# Near 100% in the source's figure. Of 128 tokens one may be missing.
FULL = Threshold(0.99, "above", SHARE, "every text and layer")
FALLS = Threshold(0.0, "below", "decades that the smallest singular value gains from the first to the last state")
RISES = Threshold(0.0, "above", "mean absolute cosine after the last layer less that before the first")


@where_measured
def decide(rows: DataFrame) -> Decision:
    first, last = float(rows.x.min()), float(rows.x.max())
    least = {part: float(evidence_rows(rows, SHARE, part).value.min()) for part in PARTS}
    falls = {part: change_of(rows, SMALLEST, part, first, last) for part in PARTS}
    rises = {part: change_of(rows, COSINE, part, first, last) for part in PARTS}
    texts = {
        part: f"{part}: rank at least {least[part]:.0%} of full, smallest singular value {falls[part].mean:+.2f} decades, cosine "
        f"{band_of(rows, COSINE, part, first).mean:.2f} to {band_of(rows, COSINE, part, last).mean:.2f}"
        for part in PARTS
    }
    sentence = f"From the state before the first of {last:.0f} layers to the last, {texts[ALL]}."
    full = {part: least[part] > FULL for part in PARTS}
    right = {part: (is_on(falls[part], FALLS), is_on(rises[part], RISES)) for part in PARTS}
    extends = [Extension(texts[part], true_of_all((full[part], *right[part]))) for part in PARTS if part != ALL]
    return judge(
        sentence,
        rises[ALL],
        "more texts",
        extends,
        contradicted=not full[ALL] or right[ALL] == (False, False),
        undecided=None in right[ALL],
        holds=right[ALL] == (True, True),
        in_part=True,
    )
