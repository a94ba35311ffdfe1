"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

import numpy as np

from rankfall.report.claim import Claim, Decision, Read, Threshold, band, band_of, compare, evidence_rows, judge

LEFT = "log10 of the last row's share outside the first token, by layer"
RATE = "log10 of the factor a layer in the second half, by network"
NETWORKS = ("weak scores", "strong scores", "weak scores, window of 4")
GONE = Threshold(-2.0, "below", LEFT, "all networks, after the last layer")  # a hundredth
# log10 of 1.01: the factor per layer is at least a hundredth larger.
SLOWER = Threshold(0.00432, "above", "log10 of the factor a layer with a window over that without")
WITHIN = Threshold(
    0.0, "below", "log10 of the factor a layer over the published bound", "masks that see everything before"
)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    depth = float(evidence_rows(rows, LEFT).x.max())
    left = {line: band_of(rows, LEFT, line, depth) for line in NETWORKS}
    measured = {
        line: evidence_rows(rows, RATE, "measured", number).value.to_numpy() for number, line in enumerate(NETWORKS)
    }
    bound = {
        line: evidence_rows(rows, RATE, "published bound", number).value.to_numpy()
        for number, line in enumerate(NETWORKS)
    }
    # The bound is for masks that see all earlier tokens. Both are logarithms, so the smaller one is the faster.
    under = {line: compare(band(measured[line] - bound[line]), WITHIN) for line in NETWORKS[:2]}
    slower = compare(band(measured[NETWORKS[2]] - measured[NETWORKS[0]]), SLOWER)
    converged = {line: compare(left[line], GONE) for line in NETWORKS}
    said = (
        f"After {depth:.0f} layers the last token has 10^x of its weight outside the first one, x = "
        + ", ".join(f"{one.mean:.3g} ({line})" for line, one in left.items())
        + "; a layer takes "
        + ", ".join(
            f"a factor {10 ** float(np.mean(measured[line])):.3f} where the bound says at most "
            f"{10 ** float(np.mean(bound[line])):.4f} ({line})"
            for line in NETWORKS[:2]
        )
        + f", and {10 ** float(np.mean(measured[NETWORKS[2]])):.3f} with a window"
        + {
            "above": ".",
            "below": ": a window delays it, but in the end all lose what the second token does, which sees two tokens that have become "
            "alike.",
            "undecided": "; whether the window makes it slower is undecided.",
        }[slower]
    )
    return judge(
        said,
        left[NETWORKS[0]],
        "more layers",
        contradicted="above" in under.values() or converged[NETWORKS[0]] == "above",
        holds={*converged.values(), *under.values()} == {"below"} and slower == "above",
        in_part=converged[NETWORKS[0]] == "below",
    )


CLAIMS = (
    Claim(
        "causal_products",
        "Products of causal attention matrices converge to the first token, exponentially in the number of layers; windows make it slower.",
        "Wu, Wang, Jegelka and Jadbabaie: On the emergence of position bias in transformers, 2025",
        "https://arxiv.org/abs/2502.01951",
        ("second-hand", "code"),
        "Causal attention with a layer norm and no skips, 96 layers of one head, width 32, 16 random tokens, weights of deviation "
        "0.02 or 0.25, "
        "and a window of 4; the theorem is for any bounded weights without skips.",
        "It holds if in all three networks less than a hundredth of the last row is outside the first token after the last layer, "
        "if the factor a "
        "layer over the second half of the layers is within the published bound (1 - the smallest weight), and if the window makes "
        "it larger; in part if the first of them converges and some of the rest fails. Contradicted if the first does not converge, "
        "or a rate exceeds the bound.",
        decide,
        shown=LEFT,
        thresholds=(GONE, WITHIN, SLOWER),
        place=330,
        changed="A window counts as slower if its factor a layer is larger by a hundredth or more. Without that limit a difference in "
        "the sixth digit was told from zero, and counted.",
    ),
)
