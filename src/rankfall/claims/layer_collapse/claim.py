"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from rankfall.claims.layer_collapse.names import ERROR, NAME, NONE, NORMED, ONE
from rankfall.claims.trends import slopes
from rankfall.report.claim import Claim, Decision, Extension, Read, Threshold, band, evidence_rows, is_on, judge

SMALL = 0.05  # the largest eta in the fit of a power

# 1 itself is reached up to the fit: the bound holds from .95 on.
AT_LEAST = Threshold(0.95, "above", "power of eta in the distance", "one layer")
FALLS = Threshold(0.0, "above", "power of eta in the distance", "one layer, to hold in part")


def decide(read: Read) -> Decision:
    rows = evidence_rows(read("evidence"), ERROR)
    near = rows[rows.x < SMALL]
    powers = {name: band(slopes(near[near.line == name], log=True)) for name in (ONE, NORMED, NONE)}
    text = "As eta goes to 0 the distance goes like " + ", ".join(
        f"eta^{powers[name].mean:.2f} ({name})" for name in (ONE, NONE)
    )
    extends = [Extension(f"networks with norms before: eta^{powers[NORMED].mean:.2f}", is_on(powers[NORMED], AT_LEAST))]
    enough, falls = is_on(powers[ONE], AT_LEAST), is_on(powers[ONE], FALLS)
    return judge(
        text
        + "; the bound has eta^1."
        + " No layer at all is within it too." * (is_on(powers[NONE], AT_LEAST) is True),
        powers[ONE],
        "smaller eta",
        extends,
        undecided=None in (enough, falls),
        holds=enough is True,
        in_part=falls is True,
        contradicted=True,
    )


CLAIMS = (
    Claim(
        NAME,
        "Skip connections do not prevent the collapse of layers: with weights of size eta, a deep network is within O(eta) |X| of one "
        "with a single layer.",
        "Alman and Song: Only large weights (and not skip connections) can prevent the perils of rank collapse, 2025",
        "https://arxiv.org/abs/2505.16284",
        ("abstract",),
        "8 layers X + softmax(X Q K^T X^T) X V, maps eta times N(0, 1/d), width 32, 16 random tokens, eta .001 to .3, 5 seeds. Ours: "
        "norms before. The single layer is constructed: mean weights, the sum of all V.",
        "It holds if the distance from the constructed single layer falls like eta^p with p of at least 1 (interval above .95), "
        "fitted where eta is below .05; in part if it falls more slowly, contradicted if it does not fall. A larger p says that the bound "
        "is not sharp. Norms decide nothing.",
        decide,
        thresholds=(AT_LEAST, FALLS),
        place=58,
        changed="Norms, which the bench adds, had decided too; a distance that falls more slowly counts in part. The verdict is the same.",
    ),
)
