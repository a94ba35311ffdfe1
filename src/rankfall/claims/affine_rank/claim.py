"""Who says it, and what decides it."""

from __future__ import annotations

from rankfall.claims.affine_rank.names import BESIDE, CHANGE, NAME, RESIDUAL, THROUGH
from rankfall.report.claim import Claim, Decision, Read, Threshold, judge, of

SAME = Threshold(0.0, "at", CHANGE, "every draw at every rank")


def decide(read: Read) -> Decision:
    rows = read("evidence")
    full = float(rows.x.max())
    parts, said = [], []
    for name in (BESIDE, THROUGH):
        found = of(rows, CHANGE, name)
        below, top = found[found.x < full].value, found[found.x == full].value
        parts.append(((below == SAME).mean(), (top == SAME).mean()))
        said.append(
            f"{name}: unchanged in {(below == SAME).mean():.0%} of draws of lower rank (changes by {below.min():+.0f} to "
            f"{below.max():+.0f}), in "
            f"{(top == SAME).mean():.0%} of full rank"
        )
    ratio = of(rows, RESIDUAL).value
    text = "; ".join(said) + f". The relative residual changes by a factor of {ratio.min():.2g} to {ratio.max():.2g}."
    everywhere = all(share == 1 for one in parts for share in one)
    anywhere = any(share == 1 for one in parts for share in one)
    number = float((of(rows, CHANGE).value == SAME).mean())
    return judge(text, number, holds=everywhere, in_part=anywhere, contradicted=True)


CLAIMS = (
    Claim(
        NAME,
        "A layer norm leaves the affine rank of tokens exactly as it is.",
        "Cirrincione: Rank, head-channel non-identifiability, and symmetry breaking, 2026",
        "https://arxiv.org/abs/2604.23681",
        ("abstract",),
        "12 tokens of width 16 in general position in affine spaces of dimension 1 to 11, through the origin and beside it, a layer "
        "norm without gain "
        "and bias, 20 draws; affine rank is that of differences from the mean, singular values above 1e-9 of the largest.",
        "It holds if the rank is the same in every draw at every rank, in part if it is at some: an exact statement has no "
        "exceptions. The number is the "
        "share of draws in which it is unchanged.",
        decide,
        thresholds=(SAME,),
        place=47,
    ),
)
