"""Who says it, and what decides it."""

from __future__ import annotations

import math
from typing import Any

from rankfall.claims.query_gradients.names import BY_WIDTH, GRADIENT, NAME, SHARE
from rankfall.claims.score_scales.limits import decay_of_squares
from rankfall.claims.trends import slope, slopes
from rankfall.report.claim import Band, Claim, Decision, Published, Read, Threshold, band, compare, judge, of

BELOW, ABOVE = (0.43, 1.0), (2.0, 3.0)
VANISHES = Threshold(
    -0.1,
    "split at",
    "power of the number of tokens in the scaled gradient over the last doubling",
    f"below it at beta {' and '.join(f'{beta:g}' for beta in BELOW)}, above it at {' and '.join(f'{beta:g}' for beta in ABOVE)}",
)
WITH_WIDTH = Threshold(-0.5, "below", "power of the width in the gradient far below the transition", "to hold in part")
LARGEST = 9.0  # of the source's picture, in 1e-6, at beta 3
PICTURE = {0.43: 0.15, 0.86: 1.2, 1.29: 3.6, 1.5: 4.7, 2.15: 7.1}


def decide(read: Read) -> Decision:
    rows = of(read("evidence"), GRADIENT).copy()
    rows["tokens"] = rows.line.str.split().str[0].astype(float)
    most = rows.tokens.max()
    powers = {beta: power(rows[rows.tokens >= most / 2], beta) for beta in (*BELOW, *ABOVE)}
    shares = of(read("evidence"), SHARE, f"{most:.0f} tokens")
    tenth = band(where_it_rises(one) for _, one in shares.groupby("seed"))
    by_width = band(slopes(of(read("evidence"), BY_WIDTH), log=True))
    text = (
        "Over the last doubling of the number of tokens the scaled gradient goes like "
        + ", ".join(f"T^{found.mean:.2f} at beta {beta:g}" for beta, found in powers.items())
        + f" (squared weights below sqrt(2): {', '.join(f'T^{decay_of_squares(beta):.2f}' for beta in BELOW)}); far below the "
        f"transition its "
        f"share of that at beta 3 goes like d^{by_width.mean:.2f} with the width d. At {most:.0f} tokens a tenth of the value at beta "
        f"3 is there "
        f"from beta {tenth} on, where the transition is at {math.sqrt(2):.3f}."
    )
    falls = {compare(powers[beta], VANISHES) for beta in BELOW}
    stays = {compare(powers[beta], VANISHES) for beta in ABOVE}
    with_width = compare(by_width, WITH_WIDTH)
    # Where one of them levels off for sure, the others cannot make it hold.
    unclear = "above" not in falls and "undecided" in falls | stays
    return judge(
        text,
        tenth,
        "more tokens and seeds: powers of T near -.1" if unclear else "more widths",
        holds=(falls, stays) == ({"below"}, {"above"}),
        undecided=unclear or with_width == "undecided",
        in_part=with_width == "below" or "below" in falls,
        contradicted=True,
    )


def power(rows: Any, beta: float) -> Band:
    chosen = rows[(rows.x - beta).abs() < 1e-9]
    return band(slope(one.tokens.map(math.log), one.value.map(math.log)) for _, one in chosen.groupby("seed"))


def where_it_rises(one: Any) -> float:
    """The scale at which a tenth is reached."""
    ordered = one.sort_values("x")
    x, y = list(ordered.x), list(ordered.value)
    for i in range(1, len(x)):
        if y[i] >= 0.1:
            return float(x[i - 1] + (x[i] - x[i - 1]) * (0.1 - y[i - 1]) / (y[i] - y[i - 1]))
    return float("nan")


CLAIMS = (
    Claim(
        NAME,
        "Gradients of query maps vanish, as sequences get longer, while scores are below the critical scale sqrt(2 log T), and do not "
        "above.",
        "Giorlandino and Goldt: Two failure modes of deep transformers and how to avoid them, 2025",
        "https://arxiv.org/abs/2505.24333",
        ("code", "figure"),
        "One layer of one head and a ReLU MLP with norms after, width 64, 64 symbols, independent tokens, 256 to 2,048 tokens, 5 "
        "seeds. The "
        "source: width 256 and 512, 2,048 and 4,096 tokens of text.",
        "A gradient vanishes if over the last doubling of the number of tokens it falls faster than T^-.1. It holds if it does at "
        "beta .43 and "
        "1 and not at 2 and 3; in part if it vanishes at one of both, or levels off with T and what it levels off at falls with the width "
        "faster than d^-.5. The number is the beta at which the longest sequences reach a tenth of their value at 3.",
        decide,
        published=tuple(
            Published(
                SHARE,
                "2048 tokens",
                beta,
                value / LARGEST,
                "figure",
                "gradients.ipynb, picture, over its value at beta 3",
            )
            for beta, value in PICTURE.items()
        ),
        defects="gradients.ipynb, cell 4: the loss is called with the masked input as its own answer (labels=input_ids), not with the "
        "collator's labels, so nothing that is masked has to be found.",
        thresholds=(VANISHES, WITH_WIDTH),
        place=26,
        shown=SHARE,
        changed="The rule first took any fall with the number of tokens for vanishing, and found one where the gradient levels off. Now "
        "the last doubling decides, and the width is measured beside it; where one gradient levels off for sure, others that "
        "lie near the bound leave nothing undecided.",
    ),
)
