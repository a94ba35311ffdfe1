"""Who says it, and what decides it."""

from __future__ import annotations

from rankfall.report.claim import Claim, Decision, Read, Threshold, band_of, compare, judge

RANKS = "rank correlation with the network, by layers"
OFF = "total variation distance from the network, by layers"
SHARE = "share of influence, by place"
NETWORKS = ("attention, no positions", "attention, RoPE", "transformer, no positions", "transformer, RoPE")
ORDERED = Threshold(0.95, "above", RANKS, "averaging, after the last layer")
NEAR = Threshold(0.1, "below", OFF, "averaging, after the last layer")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    depth = float(rows[rows.quantity == RANKS].x.max())
    ranks = {line: band_of(rows, RANKS, f"{line}, averaging", depth) for line in NETWORKS}
    off = {line: band_of(rows, OFF, f"{line}, averaging", depth) for line in NETWORKS}
    squares = {line: band_of(rows, OFF, f"{line}, in squares", depth) for line in NETWORKS[:2]}
    said = "Rank correlation with averaging, and distance from it: " + "; ".join(
        f"{line} {ranks[line].mean:.3f}, {off[line].mean:.2f}" for line in NETWORKS
    )
    said += f". A sum in squares, for attention, is {' and '.join(f'{one.mean:.2f}' for one in squares.values())} away"
    orders = {compare(ranks[line], ORDERED) for line in NETWORKS}
    near = {compare(off[line], NEAR) for line in NETWORKS}
    return judge(
        said + ".",
        ranks[NETWORKS[0]],
        "more seeds",
        holds=(orders, near) == ({"above"}, {"below"}),
        in_part="above" in orders,
        contradicted=orders == {"below"},
    )


CLAIMS = (
    Claim(
        "lost_in_the_middle_at_birth",
        "How much each place counts for the last token of an untrained causal network follows from averaging under the mask, in "
        "closed form.",
        "Lost in the middle at birth, 2026",
        "https://arxiv.org/abs/2603.10123",
        ("abstract",),
        "24 untrained layers of 4 heads, width 32, 32 places: (1 - a) X + a SA(X) with a = 0.3, and pre-norm transformers at the a "
        "that fits best; without "
        "positions and with RoPE. The source's abstract names a rank correlation of 0.99 at 24 layers.",
        "It counts in order if the rank correlation of averaging with the network is above 0.95, and in size if the shares are "
        "within 0.1 in total "
        "variation, with whole intervals over seeds. It holds if both do in all four networks, in part if the order does in some.",
        decide,
        shown=SHARE,
        thresholds=(ORDERED, NEAR),
        place=375,
        changed="The sum in squares is given for attention alone, where its weight is known and not fitted.",
    ),
)
