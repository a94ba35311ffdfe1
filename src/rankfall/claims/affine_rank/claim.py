"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from rankfall.annotations import Series
from rankfall.claims.affine_rank.names import BESIDE, CHANGE, NAME, RESIDUAL, THROUGH
from rankfall.report.claim import Claim, Decision, Extension, Read, Threshold, evidence_rows, judge

SAME = Threshold(0.0, "at", CHANGE, "every draw of lower than full rank beside the origin")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    lower = rows[rows.x < rows.x.max()]  # full rank cannot rise
    shares = {
        name: (evidence_rows(lower, CHANGE, name).value == SAME).groupby(evidence_rows(lower, CHANGE, name).x).mean()
        for name in (BESIDE, THROUGH)
    }
    beside = evidence_rows(lower, CHANGE, BESIDE).value
    ratio = evidence_rows(rows, RESIDUAL).value
    text = (
        f"In general position, at lower than full rank, a layer norm keeps the affine rank in {(beside == SAME).mean():.0%} of "
        f"draws; {say_change(beside)}. The "
        f"relative residual changes by a factor of {ratio.min():.2g} to {ratio.max():.2g}."
    )
    through = shares[THROUGH]
    return judge(
        text,
        float((beside == SAME).mean()),
        holds=bool((shares[BESIDE] == 1).all()),
        in_part=bool((shares[BESIDE] == 1).any()),
        contradicted=True,
        extends=[
            Extension(
                f"spaces through the origin, whose rank is a linear one (unchanged in {through.mean():.0%})",
                bool((through == 1).all()),
            )
        ],
    )


def say_change(change: Series) -> str:
    """Write by how much the rank changes: always by the same, or between two numbers."""
    if change.min() == change.max():
        return f"it always changes by {change.min():+.0f}"
    return f"its change lies between {change.min():+.0f} and {change.max():+.0f}"


CLAIMS = (
    Claim(
        NAME,
        "A layer norm leaves the affine rank of tokens exactly as it is.",
        "Cirrincione: Rank, head-channel non-identifiability, and symmetry breaking, 2026",
        "https://arxiv.org/abs/2604.23681",
        ("abstract",),
        "12 tokens of width 16 in general position in affine spaces of dimension 1 to 11, beside the origin and through it, a layer norm "
        "without gain and bias, 20 draws. Affine rank is that of differences from the mean: singular values above 1e-9 of the largest.",
        "Tokens in general position beside the origin decide, of every rank but the full one, which cannot rise. It holds if the rank is "
        "the same in every draw, in part if it is so in every draw of some rank; contradicted if at no rank. The number is the share of "
        "draws in which it is unchanged.",
        decide,
        thresholds=(SAME,),
        place=47,
        changed="It was in part since spaces through the origin and full ranks keep their rank. These are exceptions: the statement is of "
        "any tokens, so those in general position decide.",
    ),
)
