"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from rankfall.report.claim import (
    Claim,
    Decision,
    Extension,
    Read,
    Threshold,
    band,
    band_of,
    evidence_rows,
    is_on,
    judge,
    within,
)

MEAN = "mean score over its standard error, by distance"
SIZE = "standard deviation of scores, by distance"
ALIKE = "score of a query that equals its key, by distance"
OWN = "attention on the own token, by score scale"
DIFFER, TWICE, ROPE = "tokens that differ", "a token that occurs twice", "a token that occurs twice, RoPE"
# In standard errors. One of 60 normal numbers exceeds it in one of 2000 experiments.
LEAST, MOST = within(0.0, 4.5, MEAN)
# The standard deviation's own error is 1 / sqrt(2 * 20000) = 0.005.
WIDER = Threshold(0.03, "below", "largest standard deviation over the smallest, less one")
ALONE = 0.99  # of a token's attention on itself
SHARED = Threshold(ALONE, "below", OWN, "a token that occurs twice, without positions, at the largest scale")
DIAGONAL = Threshold(ALONE, "above", OWN, "a token that occurs twice, RoPE, at the largest scale")
PAPER = "Barbero, Vitvitskyi, Perivolaropoulos, Pascanu and Velickovic: Round and round we go!, 2025"
LINK = "https://arxiv.org/abs/2410.06205"


def decay(read: Read) -> Decision:
    rows = read("evidence")
    means = evidence_rows(rows, MEAN).value
    centred = means.min() >= LEAST and means.max() <= MOST
    sizes = evidence_rows(rows, SIZE).value
    most = float(rows.x.max())
    near, far = band_of(rows, ALIKE, "mean of queries", 0.0), band_of(rows, ALIKE, "mean of queries", most)
    said = (
        f"Scores of independent queries and keys have a mean within {means.abs().max():.1f} standard errors of zero at all distances up to "
        f"{most:.0f}, and a "
        f"standard deviation from {sizes.min():.3f} to {sizes.max():.3f}; of a query that equals its key they fall from "
        f"{near.mean:.2f} to {far.mean:.2f}."
    )
    steady = sizes.max() / sizes.min() - 1 <= WIDER
    number = band(evidence_rows(rows, SIZE, x=most).value)
    return judge(said, number, holds=centred and steady, in_part=centred, contradicted=True)


def diagonal(read: Read) -> Decision:
    rows = read("evidence")
    most = float(rows.x.max())
    twice, apart, turned = (band_of(rows, OWN, line, most) for line in (TWICE, DIFFER, ROPE))
    said = (
        f"With queries and keys that are the tokens themselves, a token that occurs twice gives itself {twice.mean:.4f} of its attention "
        f"without positions, and {turned.mean:.4f} with RoPE."
    )
    extends = [
        Extension(
            f"texts whose tokens all differ: there each gives itself at least {apart.mean:.4f}", is_on(apart, SHARED)
        )
    ]
    shared, diagonal = is_on(twice, SHARED), is_on(turned, DIAGONAL)
    return judge(
        said,
        twice,
        "larger score scales",
        extends,
        contradicted=shared is False,
        undecided=None in (shared, diagonal),
        holds=diagonal is True,
        in_part=True,
    )


CLAIMS = (
    Claim(
        "rope_scores_do_not_decay",
        "Rotary positions do not make scores fall with distance where queries and keys are normal and independent: their mean is "
        "zero at every distance.",
        PAPER,
        LINK,
        ("second-hand",),
        "Scores of 20,000 pairs of independent normal queries and keys of width 64 at distances from 0 to 1024, in 5 draws; as in "
        "the source.",
        "It holds if no mean is further than 4.5 standard errors from zero (12 distances, 5 draws) and the standard deviations at "
        "all distances are "
        "within 3% of each other; in part if only the means are.",
        decay,
        shown=SIZE,
        thresholds=(LEAST, MOST, WIDER),
        place=500,
    ),
    Claim(
        "diagonal_heads_need_positions",
        "A head without positions cannot look at its own token alone in every text; one with rotary positions can.",
        PAPER,
        LINK,
        ("second-hand",),
        "One head whose queries and keys are the tokens themselves, times a score scale up to 256; 32 normal tokens of width 64, one of "
        "which occurs twice, as in the source's proof, without positions and with RoPE.",
        "It holds if even at the largest scale a token that occurs twice gives itself less than 0.99 of its attention without positions, "
        "and with RoPE every token of that text gives itself more; in part if it does not with RoPE either; contradicted if it does "
        "without positions. Texts whose tokens all differ are ours and decide nothing.",
        diagonal,
        shown=OWN,
        thresholds=(SHARED, DIAGONAL),
        place=510,
        changed="Texts whose tokens all differ had decided too, so that it held only in part; the source's proof is about tokens that "
        "repeat. RoPE is new: that positions are enough was not measured.",
    ),
)
