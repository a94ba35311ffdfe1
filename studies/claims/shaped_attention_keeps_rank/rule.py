from rankfall import Decision, Extension, Read, Threshold, band, evidence_rows, is_on, judge
from studies.claims.rules import by_parts, true_of_all
from studies.claims.shaped_attention.names import KEPT, LEAST

FORMS = ("shaped, scores of zero", "shaped, random scores", "mixed, a tenth")
MASKS = ("none", "causal")
ENOUGH = Threshold(0.5, "above", KEPT, f"{FORMS[0]}, both masks, after the last layer")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    residuals = {
        (form, mask): band(evidence_rows(rows, KEPT, f"{form}, mask {mask}", last).value.fillna(LEAST))
        for form in ("plain", *FORMS)
        for mask in MASKS
    }
    texts = {
        form: f"{form} {' and '.join(_say(residuals[form, mask].mean) for mask in MASKS)}" for form in ("plain", *FORMS)
    }
    sentence = (
        f"Relative residual after {last:.0f} layers without skips and norms, bidirectional and causal: {texts['plain']}; "
        f"{texts[FORMS[0]]}."
    )
    answers = {form: [is_on(residuals[form, mask], ENOUGH) for mask in MASKS] for form in FORMS}
    extends = [Extension(texts[form], true_of_all(answers[form])) for form in FORMS[1:]]
    return judge(sentence, residuals[FORMS[0], MASKS[1]], "more seeds", extends, **by_parts(answers[FORMS[0]]))


def _say(mean: float) -> str:
    return f"{mean:.2g}" if mean > 2 * LEAST else "below rounding"
