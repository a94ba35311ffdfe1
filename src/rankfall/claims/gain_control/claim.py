"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from rankfall.claims.gain_control.names import COSINE, NAME, STRONG
from rankfall.report.claim import Claim, Decision, Published, Read, Threshold, band_of, evidence_rows, judge

KEPT = Threshold(0.9, "below", COSINE, "mean off, after the last layer")
KEPT_STRONG = Threshold(KEPT, "below", STRONG, "mean off, after the last layer")
LOST = Threshold(0.95, "above", COSINE, "with the mean, after the last layer")
PLACE = "Gain-controlled-propagation.ipynb, picture of the recursion, read to .01"
READ = {  # lines in the source, from its recursion
    "norms after": {10: 1.00, 100: 1.00},
    "norms before": {10: 0.89, 100: 0.99},
    "mean off, norms after": {10: 0.24, 100: 0.53},
    "mean off, norms before": {10: 0.24, 100: 0.41},
}


def decide(read: Read) -> Decision:
    rows = read("evidence")
    last = float(evidence_rows(rows, COSINE).x.max())
    names = ("norms after", "norms before")
    plain = {name: band_of(rows, COSINE, name, last) for name in names}
    cured = {name: band_of(rows, COSINE, f"mean off, {name}", last) for name in names}
    strong = {name: band_of(rows, STRONG, f"mean off, {name}", last) for name in names}
    empty = band_of(rows, COSINE, "no attention, norms after", last)
    text = (
        f"Cosine after {last:.0f} layers at beta .1: "
        + ", ".join(f"{plain[name].mean:.3g} with {name}, {cured[name].mean:.3g} without the mean" for name in names)
        + f"; {empty.mean:.3g} with no attention at all. At beta 3 without the mean: "
        + ", ".join(f"{strong[name].mean:.3g} with {name}" for name in names)
        + "."
    )
    works = [one.high < KEPT for one in cured.values()] + [one.high < KEPT_STRONG for one in strong.values()]
    needed = [one.low > LOST for one in plain.values()]
    cures = all(works) and all(needed)
    return judge(text, cured["norms after"], holds=cures, in_part=any(works), contradicted=True)


CLAIMS = (
    Claim(
        NAME,
        "Skip connections do not keep tokens apart in deep networks; taking the mean over the sequence off what attention makes does.",
        "Giorlandino and Goldt: Two failure modes of deep transformers and how to avoid them, 2025",
        "https://arxiv.org/abs/2505.24333",
        ("code", "figure"),
        "100 layers of one head and a ReLU MLP, width 192, 128 tokens of cosine .2, beta .1 as in the source and 3, norms before and "
        "after, 5 "
        "seeds. The source shows its recursion alone, at beta .1.",
        "It holds if after the last layer cosines are above .95 with the mean and below .9 without it, with norms before and after, "
        "and at beta 3 "
        "too: at .95 three tenths of a token's length, at .9 less than half, are still its own.",
        decide,
        published=tuple(
            Published(COSINE, f"recursion, {name}", layer, value, "figure", PLACE)
            for name, of_layer in READ.items()
            for layer, value in of_layer.items()
        ),
        defects="Gain-controlled-propagation.ipynb, cell 0: with norms before, the critical scale is taken from the states' own q "
        "and p, which grow with depth, though attention is given normed ones (it has beta_c of q (q - p), where q = 1 and p = rho "
        "belong). At beta .1 this has no effect: without the mean, attention then adds nothing at all.",
        thresholds=(KEPT, KEPT_STRONG, LOST),
        place=25,
        shown=COSINE,
    ),
)
