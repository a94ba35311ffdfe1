from rankfall import DataFrame, Decision, Extension, Threshold, band, band_of, evidence_rows, is_on, judge
from studies.claims.pretrained_encoder.names import ALL, CUT, FLOOR, PARTS, RESIDUAL
from studies.claims.pretrained_encoder.reading import where_measured
from studies.claims.rules import by_need

# The differences of tokens have a quarter of the energy, or a hundredth.
KEPT = Threshold(0.5, "above", RESIDUAL, "skips and MLPs, after the last layer")
LOST = Threshold(0.1, "below", RESIDUAL, f"{CUT}, after the last layer")


@where_measured
def decide(rows: DataFrame) -> Decision:
    last = float(rows.x.max())
    kept = {part: band_of(rows, RESIDUAL, part, last) for part in PARTS}
    lost = band(evidence_rows(rows, RESIDUAL, CUT, last).value.fillna(FLOOR))
    sentence = (
        f"Relative residual after {last:.0f} layers: {kept[ALL].mean:.2f}; "
        f"{f'{lost.mean:.2g}' if lost.mean > 2 * FLOOR else 'below rounding'} with skips and MLPs cut."
    )
    answers = {part: is_on(residual, KEPT) for part, residual in kept.items()}
    extends = [Extension(f"states {part}: {kept[part].mean:.2f}", answers[part]) for part in PARTS if part != ALL]
    return judge(sentence, kept[ALL], "more texts", extends, **by_need(answers[ALL], is_on(lost, LOST)))
