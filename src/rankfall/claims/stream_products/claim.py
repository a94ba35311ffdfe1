"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

import math

from rankfall.claims.answers import by_parts
from rankfall.claims.stream_products.names import APART, DEVIATIONS, EQUAL, FREE, GAIN, KEPT, OUT, RATE, STOCHASTIC
from rankfall.claims.trends import slopes
from rankfall.report.claim import Claim, Decision, Read, Threshold, band, band_of, compare, evidence_rows, judge

EXPLODES = Threshold(0.0, "above", RATE, "every d")
NEAR = Threshold(math.log10(1.6), "below", GAIN, "a gain of 1.6, as in the source")
GONE = Threshold(-2.0, "below", APART, "a hundredth of what they did, after the last map")
XIE = "Xie et al.: mHC: manifold-constrained hyper-connections, 2025"
LINK = "https://arxiv.org/abs/2512.24880"


def decide_free(read: Read) -> Decision:
    rows = read("evidence")
    last = float(evidence_rows(rows, GAIN).x.max())
    rates = {d: band_of(rows, RATE, "1 + d N", d) for d in DEVIATIONS}
    ends = {d: band_of(rows, GAIN, f"1 + {d:g} N", last) for d in DEVIATIONS}
    text = (
        "In the long run a map 1 + d N multiplies the product by 10^x, x = "
        + ", ".join(f"{rates[d].mean:.2g} at d = {d:g}" for d in DEVIATIONS)
        + f": at d = {DEVIATIONS[0]:g} it doubles in {math.log10(2) / rates[DEVIATIONS[0]].mean:,.0f} maps."
        + f" After {last:.0f} maps the gain is "
        + ", ".join(f"10^{ends[d].mean:.2f} at d = {d:g}" for d in DEVIATIONS)
    )
    found = {compare(rates[d], EXPLODES) for d in DEVIATIONS}
    return judge(
        text + ".",
        rates[DEVIATIONS[0]],
        "more seeds, or longer products",
        holds=found == {"above"},
        undecided="undecided" in found,
        in_part="above" in found,
        contradicted=True,
    )


def decide_kept(read: Read) -> Decision:
    rows = read("evidence")
    last = float(rows.x.max())
    # One round does not give a doubly stochastic map. It is shown, but the claim is not about it.
    largest = {name: 10 ** float(evidence_rows(rows, GAIN, name).value.max()) for name in STOCHASTIC}
    listed = ", ".join(f"{value:.6f} ({name})" for name, value in largest.items())
    theirs = [value for name, value in largest.items() if "one round" not in name]
    text = f"The largest gain of products of up to {last:.0f} maps is {listed}."
    return judge(text, max(theirs), **by_parts(math.log10(value) < NEAR for value in theirs))


def decide_equal(read: Read) -> Decision:
    rows = read("evidence")
    last = float(evidence_rows(rows, APART).x.max())
    names = sorted(evidence_rows(rows, APART).line.unique())
    ends = {name: band_of(rows, APART, name, last) for name in names}
    rates = {name: band(slopes(evidence_rows(rows, APART, name))) for name in names}
    order = band(slopes(evidence_rows(rows, OUT)))
    text = (
        f"After {last:.0f} maps streams differ by "
        + ", ".join(
            f"10^{ends[name].mean:.1f} of what they did ({name}, {10 ** rates[name].mean:.2f} a layer)"
            for name in names
        )
        + f". The order of contraction of streams is {order.mean:.3f}: exponential."
    )
    found = {compare(ends[name], GONE) for name in names}
    return judge(
        text,
        ends[names[-1]],
        "more layers or seeds",
        undecided="undecided" in found,
        holds=found == {"below"},
        in_part="below" in found,
        contradicted=True,
    )


CLAIMS = (
    Claim(
        FREE,
        "Products of unconstrained maps between the streams of hyper-connections explode with depth.",
        f"{XIE}, of Zhu et al.: Hyper-connections, 2024",
        LINK,
        ("second-hand",),
        "Products of 64 and of 20,000 maps 1 + d N of 4 streams, N independent N(0, 1), d .01 to .3, 20 seeds. The source: trained maps of "
        "a 27B model, gain up to 3,000.",
        "A product explodes if it grows exponentially: the decades a map over 20,000 maps (the largest Lyapunov exponent) lie above 0, "
        "with the whole interval over seeds. It holds if this is so for all d, in part for some. The number is that of the smallest d.",
        decide_free,
        thresholds=(EXPLODES,),
        place=50,
        shown=GAIN,
        changed="The rule asked for .01 decades a layer within 64 layers, a number that nobody has published: a positive exponent is what "
        "makes a product explode.",
    ),
    Claim(
        KEPT,
        "Doubly stochastic maps between streams, by 20 rounds of Sinkhorn, keep the gain of their products near 1.",
        XIE,
        LINK,
        ("second-hand",),
        "Products of up to 64 maps of 4 streams: Sinkhorn of e^N, and of e^(N + 4 1), 20 rounds; one round beside them. 20 seeds, float64.",
        "It holds if no product has a gain (largest absolute sum of a row or a column) above 1.6, the source's own largest; "
        "in part if none of the one kind of maps has, random or near the identity.",
        decide_kept,
        thresholds=(NEAR,),
        place=51,
        changed="One kind of maps alone counts in part; it had counted as contradicted. The verdict is the same.",
    ),
    Claim(
        EQUAL,
        "Products of doubly stochastic maps tend to the mean: the streams of a deep network become equal.",
        "tokenbender: issue 2 of an implementation of manifold-constrained hyper-connections, 2026",
        "https://github.com/tokenbender/mHC-manifold-constrained-hyper-connections/issues/2",
        ("text",),
        "Products of 64 doubly stochastic maps of 4 streams, random and near the identity, without a rounding floor; and the order of "
        "contraction "
        "of streams 1 x^T + e D under a map that depends on them. 20 seeds.",
        "It holds if after 64 maps streams differ by less than a hundredth of what they did (interval) for random maps and for those "
        "near the "
        "identity; in part for one of both.",
        decide_equal,
        thresholds=(GONE,),
        place=52,
        shown=APART,
    ),
)
