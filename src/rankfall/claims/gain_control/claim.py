"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from rankfall.claims.answers import true_of_all
from rankfall.claims.gain_control.names import COSINE, NAME, STRONG
from rankfall.report.claim import (
    Claim,
    Decision,
    Extension,
    Published,
    Read,
    Threshold,
    band_of,
    evidence_rows,
    is_on,
    judge,
)

KEPT = Threshold(0.9, "below", COSINE, "mean off, after the last layer")
KEPT_STRONG = Threshold(KEPT, "below", STRONG, "mean off, after the last layer, to extend to beta 3")
LOST = Threshold(0.95, "above", COSINE, "with the mean, after the last layer")
LOST_STRONG = Threshold(LOST, "above", STRONG, "with the mean, after the last layer, to extend to beta 3")
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
        + f"; {empty.mean:.3g} with no attention at all."
    )
    works = [is_on(one, KEPT) for one in cured.values()]
    needed = [is_on(one, LOST) for one in plain.values()]
    strong_plain = {name: band_of(rows, STRONG, name, last) for name in names}
    kept_at_three = ", ".join(f"{strong_plain[name].mean:.3g} with {name}" for name in names)
    at_three = ", ".join(f"{strong[name].mean:.3g} with {name}" for name in names)
    return judge(
        text,
        cured["norms after"],
        "more seeds",
        holds=set(works + needed) == {True},
        in_part=True in works and False in works + needed,
        contradicted=set(works) == {False},
        extends=[
            Extension(
                f"beta 3, without the mean ({at_three})",
                true_of_all(is_on(one, KEPT_STRONG) for one in strong.values()),
            ),
            Extension(
                f"beta 3, with the mean ({kept_at_three})",
                true_of_all(is_on(one, LOST_STRONG) for one in strong_plain.values()),
            ),
        ],
    )


CLAIMS = (
    Claim(
        NAME,
        "Skip connections do not keep tokens apart in deep networks; taking the mean over the sequence off what attention makes does.",
        "Giorlandino and Goldt: Two failure modes of deep transformers and how to avoid them, 2025",
        "https://arxiv.org/abs/2505.24333",
        ("code", "figure"),
        "100 layers of one head and a ReLU MLP, width 192, 128 tokens of cosine .2, beta .1 as in the source and 3, norms before and "
        "after, 5 seeds. The source shows its recursion alone, at beta .1.",
        "It holds if at beta .1, after the last layer, cosines are above .95 with the mean and below .9 without it, with norms before "
        "and after (intervals); in part if the cure works at one place of the norms, or is not needed at one; contradicted if it works "
        "at neither. At a cosine of .95 three tenths of a token's length are still its own, at .9 less than half. The two "
        "halves extend to beta 3 if cosines are below .9 and above .95 there too.",
        decide,
        published=tuple(
            Published(COSINE, f"recursion, {name}", layer, value, "figure", PLACE)
            for name, of_layer in READ.items()
            for layer, value in of_layer.items()
        ),
        defects="Gain-controlled-propagation.ipynb, cell 0: with norms before, the critical scale is taken from the states' own q "
        "and p, which grow with depth, though attention is given normed ones (it has beta_c of q (q - p), where q = 1 and p = rho "
        "belong). At beta .1 this has no effect: without the mean, attention then adds nothing at all.",
        thresholds=(KEPT, KEPT_STRONG, LOST, LOST_STRONG),
        place=25,
        shown=COSINE,
        changed="Beta 3, which the source does not show, had decided too; it is reported beside the verdict.",
    ),
)
