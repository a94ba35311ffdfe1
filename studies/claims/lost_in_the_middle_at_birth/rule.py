from rankfall import Decision, Extension, Read, Threshold, band_of, is_on, judge
from studies.claims.lost_in_the_middle_at_birth.names import OFF, RANKS
from studies.claims.rules import by_parts, true_of_all

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
    sentence = f"Rank correlation with averaging, and distance from it: {'; '.join(texts[line] for line in THEIRS)}."
    if all(ranks[line].high < PUBLISHED for line in THEIRS):
        sentence += f" Both rank correlations are decidedly below the source's {PUBLISHED:g}."
    parts = {line: (is_on(ranks[line], ORDERED), is_on(off[line], NEAR)) for line in ranks}
    extends = [
        Extension(f"{texts[line]} (from a sum in squares {squares[line].mean:.2f})", true_of_all(parts[line]))
        for line in ALONE
    ]
    return judge(
        sentence,
        ranks[THEIRS[0]],
        "more seeds",
        extends,
        **by_parts(answer for line in THEIRS for answer in parts[line]),
    )
