"""Who says it, and what decides it."""

from __future__ import annotations

from rankfall.report.claim import Claim, Decision, Read, Threshold, band, compare, judge, of

KEPT = "relative residual, by layer"
FORMS = ("shaped, scores of zero", "shaped, random scores", "mixed, a tenth")
MASKS = ("none", "causal")
ENOUGH = Threshold(0.5, "above", KEPT, "shaped, both kinds of scores and masks, after the last layer")
LEAST = 1e-13


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    found = {
        (form, mask): band(of(rows, KEPT, f"{form}, mask {mask}", last).value.fillna(LEAST))
        for form in ("plain", *FORMS)
        for mask in MASKS
    }
    said = f"Relative residual after {last:.0f} layers without skips and norms, bidirectional and causal: " + "; ".join(
        f"{form} " + " and ".join(_say(found[form, mask].mean) for mask in MASKS) for form in ("plain", *FORMS)
    )
    shaped = {compare(found[form, mask], ENOUGH) for form in FORMS[:2] for mask in MASKS}
    return judge(
        said + ".",
        found[FORMS[1], MASKS[0]],
        "more seeds",
        holds=shaped == {"above"},
        in_part="above" in shaped,
        undecided="undecided" in shaped,
        contradicted=True,
    )


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
        "It holds if the relative residual stays above one half after the last layer with 1 + A - C, with scores of zero and with "
        "random ones, with and "
        "without a causal mask; in part if for some of the four.",
        decide,
        shown=KEPT,
        thresholds=(ENOUGH,),
        place=650,
    ),
)
