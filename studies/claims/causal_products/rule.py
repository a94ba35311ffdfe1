import numpy as np

from rankfall import Decision, Read, Threshold, band, band_of, compare, evidence_rows, judge
from studies.claims.causal_products.names import LEFT, RATE

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
    outside = {line: band_of(rows, LEFT, line, depth) for line in NETWORKS}
    measured, bound = (
        {line: evidence_rows(rows, RATE, kind, number).value.to_numpy() for number, line in enumerate(NETWORKS)}
        for kind in ("measured", "published bound")
    )
    # The bound is for masks that see all earlier tokens. Both are logarithms: the smaller is faster.
    under = {line: compare(band(measured[line] - bound[line]), WITHIN) for line in NETWORKS[:2]}
    slower = compare(band(measured[NETWORKS[2]] - measured[NETWORKS[0]]), SLOWER)
    converged = {line: compare(outside[line], GONE) for line in NETWORKS}
    sentence = (
        f"After {depth:.0f} layers the last token has 10^x of its weight outside the first one, x = "
        + ", ".join(f"{share.mean:.3g} ({line})" for line, share in outside.items())
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
        sentence,
        outside[NETWORKS[0]],
        "more layers",
        contradicted="above" in under.values() or converged[NETWORKS[0]] == "above",
        holds={*converged.values(), *under.values()} == {"below"} and slower == "above",
        in_part=converged[NETWORKS[0]] == "below",
    )
