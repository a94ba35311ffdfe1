"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from rankfall.claims.answers import by_parts, true_of_all
from rankfall.report.claim import Claim, Decision, Extension, Read, Threshold, band_of, is_on, judge

RANKS = "rank correlation with the network, by layers"
OFF = "total variation distance from the network, by layers"
SHARE = "share of influence, by place"
THEIRS = ("transformer, no positions", "transformer, RoPE")
ALONE = ("attention, no positions", "attention, RoPE")
ORDERED = Threshold(0.95, "above", RANKS, "averaging, transformers, after the last layer")
PUBLISHED = 0.99  # the source's rank correlation at 24 layers
NEAR = Threshold(0.1, "below", OFF, "averaging, transformers, after the last layer")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    depth = float(rows[rows.quantity == RANKS].x.max())
    ranks, off = (
        {line: band_of(rows, quantity, f"{line}, averaging", depth) for line in (*THEIRS, *ALONE)}
        for quantity in (RANKS, OFF)
    )
    squares = {line: band_of(rows, OFF, f"{line}, in squares", depth) for line in ALONE}
    texts = {line: f"{line} {ranks[line].mean:.3f}, {off[line].mean:.2f}" for line in ranks}
    said = f"Rank correlation with averaging, and distance from it: {'; '.join(texts[line] for line in THEIRS)}."
    if all(ranks[line].high < PUBLISHED for line in THEIRS):
        said += f" Both rank correlations are decidedly below the source's {PUBLISHED:g}."
    parts = {line: (is_on(ranks[line], ORDERED), is_on(off[line], NEAR)) for line in ranks}
    extends = [
        Extension(f"{texts[line]} (from a sum in squares {squares[line].mean:.2f})", true_of_all(parts[line]))
        for line in ALONE
    ]
    return judge(
        said, ranks[THEIRS[0]], "more seeds", extends, **by_parts(one for line in THEIRS for one in parts[line])
    )


CLAIMS = (
    Claim(
        "lost_in_the_middle_at_birth",
        "How much each place counts for the last token of an untrained causal network follows from averaging under the mask, in "
        "closed form.",
        "Lost in the middle at birth, 2026",
        "https://arxiv.org/abs/2603.10123",
        ("abstract",),
        "24 untrained layers of 4 heads, width 32, 32 places, pre-norm transformers without positions and with RoPE; the weight a of "
        "attention is the one that fits best, a number a network. The source has untrained GPT-2 and Qwen2, and names a rank correlation "
        f"of {PUBLISHED:g} at 24 layers. Ours: attention alone, (1 - a) X + a SA(X) with a = 0.3.",
        "It counts in order if the rank correlation of averaging with the network is above 0.95 (the source's 0.99 is of larger "
        "networks), and in size if the shares are within 0.1 in total variation, with whole intervals over seeds. It holds if both do "
        "without positions and with RoPE, in part if some do, and is contradicted if none does. Attention alone decides nothing.",
        decide,
        shown=SHARE,
        thresholds=(ORDERED, NEAR),
        place=375,
        changed="Attention alone, which is ours, had decided too, so that it held only in part; the source has transformers. The sum in "
        "squares is given for attention alone, where its weight is known and not fitted.",
    ),
)
