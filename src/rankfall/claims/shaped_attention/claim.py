"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from rankfall.claims.answers import by_parts, true_of_all
from rankfall.report.claim import Claim, Decision, Extension, Read, Threshold, band, evidence_rows, is_on, judge

KEPT = "relative residual, by layer"
FORMS = ("shaped, scores of zero", "shaped, random scores", "mixed, a tenth")
MASKS = ("none", "causal")
ENOUGH = Threshold(0.5, "above", KEPT, f"{FORMS[0]}, both masks, after the last layer")
LEAST = 1e-13


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    found = {
        (form, mask): band(evidence_rows(rows, KEPT, f"{form}, mask {mask}", last).value.fillna(LEAST))
        for form in ("plain", *FORMS)
        for mask in MASKS
    }
    texts = {
        form: f"{form} {' and '.join(_say(found[form, mask].mean) for mask in MASKS)}" for form in ("plain", *FORMS)
    }
    said = (
        f"Relative residual after {last:.0f} layers without skips and norms, bidirectional and causal: {texts['plain']}; "
        f"{texts[FORMS[0]]}."
    )
    answers = {form: [is_on(found[form, mask], ENOUGH) for mask in MASKS] for form in FORMS}
    extends = [Extension(texts[form], true_of_all(answers[form])) for form in FORMS[1:]]
    return judge(said, found[FORMS[0], MASKS[1]], "more seeds", extends, **by_parts(answers[FORMS[0]]))


def _say(mean: float) -> str:
    return f"{mean:.2g}" if mean > 2 * LEAST else "below rounding"


CLAIMS = (
    Claim(
        "shaped_attention_keeps_rank",
        "Attention shaped to begin near the identity keeps signals apart without skip connections and norms, at any depth.",
        "He, Martens, Zhang, Botev, Brock, Smith and Teh: Deep transformers without shortcuts, 2023",
        "https://arxiv.org/abs/2302.10322",
        ("second-hand",),
        "32 layers of one head, width 64, 32 random tokens, orthogonal value maps, queries and keys N(0, 1 / width) or zero; "
        "nothing is trained. The source "
        "trains such networks, with queries that begin at zero.",
        "It holds if the relative residual stays above one half after the last layer with 1 + A - C and scores of zero, with and "
        "without a causal mask; in part if for one. Random scores, and (1 - g) 1 + g A, are ours and decide nothing.",
        decide,
        shown=KEPT,
        thresholds=(ENOUGH,),
        place=650,
        changed="Random scores, which the bench adds, had decided too. The verdict is the same.",
    ),
)
