"""Who says it, and what decides it."""

from __future__ import annotations

from rankfall.report.claim import Claim, Decision, Read, Threshold, band_of, compare, judge, of

PEAK = "distance of the largest entry of the last row, by layers"
OFF = "total variation distance from the closed form, by layers"
FIRST = "share of the last row at the first token, by layers"
PUBLISHED = "published, t / (e^m - 1)"
EQUAL, WEAK, STRONG = "equal scores", "weak scores", "strong scores"
# Tokens: binomials with t - 1 and with t have peaks 1 / (e^m - 1) = 4 apart, and the sum's own is one below. Two entries there are equal,
# up to rounding.
BESIDE = Threshold(5.0, "below", "tokens between the largest entry of the last row and the published peak")
CLOSE = Threshold(0.05, "below", OFF)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    layers = sorted(set(of(rows, PEAK, EQUAL).x))
    near = {
        line: [
            layer
            for layer in layers
            if compare(band_of(rows, OFF, line, layer), CLOSE) == "below"
            and abs(band_of(rows, PEAK, line, layer).mean - band_of(rows, PEAK, PUBLISHED, layer).mean) <= BESIDE + 1e-6
        ]
        for line in (EQUAL, WEAK, STRONG)
    }
    last = layers[-1]
    off = {line: band_of(rows, OFF, line, last) for line in (EQUAL, WEAK, STRONG)}
    peak, published = (band_of(rows, PEAK, line, last).mean for line in (EQUAL, PUBLISHED))
    said = (
        "The shape is C(t - 1 + d, d) e^(-m d), and the peak as published, at: "
        + "; ".join(
            f"{line}, {', '.join(f'{layer:.0f}' for layer in near[line]) or 'no number of'} layers" for line in near
        )
        + f". At {last:.0f} layers the distance from the closed form is {off[EQUAL].mean:.2f}, the largest entry is {peak:.0f} "
        f"tokens back where {published:.0f} is published, and the first token has "
        f"{band_of(rows, FIRST, EQUAL, last).mean:.0%}."
    )
    everywhere = all(len(found) == len(layers) for found in near.values())
    return judge(said, off[EQUAL], holds=everywhere, in_part=bool(near[EQUAL]), contradicted=True)


CLAIMS = (
    Claim(
        "alibi_peak",
        "After t causal layers with ALiBi of slope m, token i has weights in proportion to C(t + d, d) e^(-m d) of what is d tokens "
        "back, so most "
        "of it is of tokens near d = t / (e^m - 1).",
        "Wu, Wang, Jegelka and Jadbabaie: On the emergence of position bias in transformers, 2025",
        "https://arxiv.org/abs/2502.01951",
        ("second-hand",),
        "Products of the attention matrices of 1 to 128 causal layers with m = -ln 0.8, 256 tokens, one head, a layer norm and no "
        "skips; scores "
        "without content, or with that of weights of deviation 0.02 and 0.25. Any weights in the theorem, whose constants are free.",
        "It counts at a number of layers if the last row is within 0.05 of the closed form in total variation (with t - 1 in the "
        "binomial, which is "
        "what t layers give) and its largest entry within 5 tokens of t / (e^m - 1). It holds if so for all layers and scores; in "
        "part if for some "
        "layers of equal scores.",
        decide,
        shown=PEAK,
        thresholds=(CLOSE, BESIDE),
        place=340,
        changed="Peaks may lie 5 tokens apart up to rounding, and not to the last digit: two neighbouring entries of the product are "
        "equal there.",
    ),
)
