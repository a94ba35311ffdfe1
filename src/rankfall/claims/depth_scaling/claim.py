"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from rankfall.claims.depth_scaling.names import COSINE, NAME, PLAIN, SCALED
from rankfall.report.claim import Claim, Decision, Read, Threshold, band, band_of, compare, evidence_rows, judge

ONE = Threshold(0.99, "split at", COSINE, f"at the greatest depth: below it {SCALED}, above it {PLAIN}")
STILL = Threshold(0.02, "below", "size of the change of the cosine over the last doubling of layers", SCALED)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    depths = sorted(evidence_rows(rows, COSINE, SCALED).x.unique())
    last, before = float(depths[-1]), float(depths[-2])
    scaled, plain = band_of(rows, COSINE, SCALED, last), band_of(rows, COSINE, PLAIN, last)
    pairs = evidence_rows(rows, COSINE, SCALED, last).merge(evidence_rows(rows, COSINE, SCALED, before), on="seed")
    change = band(pairs.value_x - pairs.value_y)
    text = (
        f"After {last:.0f} layers the cosine is {scaled} with branches by 1/sqrt(L), {change.mean:+.3f} since {before:.0f}, and "
        f"{plain} with "
        "branches as they are and norms after."
    )
    stays = scaled.high < ONE and max(abs(change.low), abs(change.high)) < STILL
    plain_side = compare(plain, ONE)
    return judge(
        text,
        scaled,
        "more layers or seeds",
        contradicted=scaled.low > ONE,
        holds=stays and plain_side == "above",
        in_part=stays and plain_side == "below",
    )


CLAIMS = (
    Claim(
        NAME,
        "Branches scaled by 1/sqrt(L) keep the correlation of tokens below 1 at any depth L.",
        "Noci et al.: Signal propagation in transformers, 2022",
        "https://arxiv.org/abs/2206.03126",
        ("abstract", "second-hand"),
        "Attention and ReLU MLP, Xavier's start, width 64, 4 heads, 16 random tokens, no norms, 4 to 512 layers, 40 seeds; plain skips 5.",
        "It holds if at 512 layers the cosine is below .99 and has changed by less than .02 since 256, as one that has a limit does, while "
        "branches as they are with norms after end above .99; in part if those end below, so that no scaling was needed; contradicted "
        "if scaled ones end above .99.",
        decide,
        thresholds=(ONE, STILL),
        place=41,
        changed="40 seeds instead of 5, since the change over the last doubling could not be told from its bound. The bound of the cosine "
        "was .95: the statement says below 1, and .99 is where the other networks count as equal.",
    ),
)
