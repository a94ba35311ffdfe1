"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankfall.report.claim import Claim, Decision, Extension, Read, Threshold, band_of, compare, evidence_rows, judge

if TYPE_CHECKING:
    from pandas import DataFrame

PEAK = "distance of the largest entry of the last row, by layers"
OFF = "total variation distance from the closed form, by layers"
PUBLISHED = "published, t / (e^m - 1)"
EQUAL, WEAK, STRONG = "equal scores", "weak scores", "strong scores"
# Tokens: binomials with t - 1 and with t have peaks 1 / (e^m - 1) = 4 apart, and the sum's own peak is one below. Two entries there are
# equal, up to rounding.
BESIDE = Threshold(5.0, "below", "tokens between the largest entry of the last row and the published peak")
CLOSE = Threshold(0.05, "below", OFF)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    layers = sorted(set(evidence_rows(rows, PEAK, EQUAL).x))
    near = {line: [layer for layer in layers if is_near(rows, line, layer)] for line in (EQUAL, WEAK, STRONG)}
    last = layers[-1]
    off = band_of(rows, OFF, EQUAL, last)
    peaks = {line: band_of(rows, PEAK, line, last).mean for line in (EQUAL, WEAK, STRONG, PUBLISHED)}
    said = (
        f"With equal scores rows are C(t - 1 + d, d) e^(-m d), where the published binomial has t, and the largest entry lies within 5 "
        f"tokens of the published peak, at {_list(near[EQUAL])} layers. At {last:.0f} layers it is {peaks[EQUAL]:.0f} tokens back where "
        f"{peaks[PUBLISHED]:.0f} is published; the row is {off.mean:.2g} from the closed form."
    )
    return judge(
        said,
        off,
        holds=near[EQUAL] == layers,
        in_part=bool(near[EQUAL]),
        contradicted=True,
        extends=[
            Extension(
                f"{line} of content (so at {_list(near[line])} layers; peak at {peaks[line]:.0f} in the end)",
                near[line] == layers,
            )
            for line in (WEAK, STRONG)
        ],
    )


def is_near(rows: DataFrame, line: str, layer: float) -> bool:
    """Return whether the last row has the published shape and peak."""
    peak, published = (band_of(rows, PEAK, name, layer).mean for name in (line, PUBLISHED))
    return compare(band_of(rows, OFF, line, layer), CLOSE) == "below" and abs(peak - published) <= BESIDE + 1e-6


def _list(layers: list[float]) -> str:
    return ", ".join(f"{layer:.0f}" for layer in layers) or "no number of"


CLAIMS = (
    Claim(
        "alibi_peak",
        "After t causal layers with ALiBi of slope m, token i has weights in proportion to C(t + d, d) e^(-m d) of what is d tokens "
        "back, with their peak near d = t / (e^m - 1).",
        "Wu, Wang, Jegelka and Jadbabaie: On the emergence of position bias in transformers, 2025",
        "https://arxiv.org/abs/2502.01951",
        ("second-hand",),
        "Last rows of products of the attention matrices of 1 to 128 causal layers with m = -ln 0.8, 1,024 tokens, one head, a layer norm "
        "and no skips. Scores without content; beside them scores of content, of weights of deviation 0.02 and 0.25. The theorem is of any "
        "weights, up to a constant that depends on them and on the number of layers: only without content is it a number.",
        "Equal scores decide. At a number of layers it is so if the last row is within 0.05 of the closed form in total variation (with "
        "t - 1 in the binomial, which is what t layers give) and its largest entry within 5 tokens of t / (e^m - 1). It holds if so at all "
        "numbers of layers, in part if at some.",
        decide,
        shown=PEAK,
        thresholds=(CLOSE, BESIDE),
        place=340,
        changed="Peaks may lie 5 tokens apart up to rounding, and not to the last digit: two neighbouring entries of the product are "
        "equal there. 1,024 tokens instead of 256, in which a peak 512 tokens back has no place. Equal scores alone decide: with content "
        "the theorem leaves a constant free.",
    ),
)
