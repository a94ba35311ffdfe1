"""Who says it, and what decides it."""

from __future__ import annotations

from rankfall.claims.layer_collapse.names import ERROR, NAME, NONE, NORMED, ONE
from rankfall.claims.trends import slopes
from rankfall.report.claim import Claim, Decision, Read, Threshold, band, compare, judge, of

SMALL = 0.05  # eta up to which a power of it is fitted

# 1 itself is reached up to the fit: the bound holds from .95 on.
AT_LEAST = Threshold(0.95, "above", "power of eta in the distance", "one layer, with norms and without")


def decide(read: Read) -> Decision:
    rows = of(read("evidence"), ERROR)
    near = rows[rows.x < SMALL]
    powers = {name: band(slopes(near[near.line == name], log=True)) for name in (ONE, NORMED, NONE)}
    text = "As eta goes to 0 the distance goes like " + ", ".join(
        f"eta^{one.mean:.2f} ({name})" for name, one in powers.items()
    )
    text += ": one layer is closer than the bound says, which leaving all layers out meets."
    found = {compare(powers[name], AT_LEAST) for name in (ONE, NORMED)}
    unclear, everywhere = "undecided" in found, found == {"above"}
    return judge(text, powers[ONE], "smaller eta", undecided=unclear, holds=everywhere, contradicted=True)


CLAIMS = (
    Claim(
        NAME,
        "Skip connections do not prevent the collapse of layers: with weights of size eta, a deep network is within O(eta) |X| of one "
        "with a single layer.",
        "Alman and Song: Only large weights (and not skip connections) can prevent the perils of rank collapse, 2025",
        "https://arxiv.org/abs/2505.16284",
        ("abstract",),
        "8 layers X + softmax(X Q K^T X^T) X V, maps eta times N(0, 1/d), width 32, 16 random tokens, eta .001 to .3, 5 seeds, with "
        "norms before and "
        "without. The single layer is constructed: mean weights, the sum of all V.",
        "It holds if the distance from the constructed single layer falls like eta^p with p of at least 1 (interval above .95), "
        "fitted where eta is "
        "below .05, with norms and without. A larger p says that the bound is not sharp.",
        decide,
        thresholds=(AT_LEAST,),
        place=58,
    ),
)
