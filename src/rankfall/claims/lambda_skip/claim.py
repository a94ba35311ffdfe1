"""Who says it, and what decides it."""

from __future__ import annotations

from itertools import pairwise

from rankfall.claims.lambda_skip.names import KINDS, LAMBDAS, LOSS, NAME
from rankfall.report.claim import Claim, Decision, Read, Threshold, band_of, judge

STILL = Threshold(-1e-3, "above", LOSS, f"every kind at lambda {LAMBDAS[-1]:g}")  # half in 300 layers


def decide(read: Read) -> Decision:
    rows = read("evidence")
    losses = {kind: [band_of(rows, LOSS, kind, one) for one in LAMBDAS] for kind in KINDS}
    text = "Decades of residual that a layer loses at lambda " + ", ".join(f"{one:g}" for one in LAMBDAS)
    text += (
        ": "
        + "; ".join(f"{kind} {', '.join(f'{-one.mean:.2g}' for one in found)}" for kind, found in losses.items())
        + "."
    )
    kept = [found[-1].low > STILL for found in losses.values()]
    slower = [all(a.mean < b.mean for a, b in pairwise(found)) for found in losses.values()]
    number = losses["attention, every token"][-1]
    return judge(text, number, holds=all(kept), in_part=any(kept) or any(slower), contradicted=True)


CLAIMS = (
    Claim(
        NAME,
        "A skip connection times a large enough lambda prevents rank collapse, in attention and in state space models alike.",
        "Joseph et al.: Lambda-skip connections: the architectural component that prevents rank collapse, 2024",
        "https://arxiv.org/abs/2410.10609",
        ("abstract",),
        "N(lambda X + F(X)) with a root-mean-square norm, F attention (2 heads) or a selective state space model, Xavier's start, "
        "width 32, 16 tokens that differ by a hundredth of what they share, 128 layers, lambda .5 to 8, 5 seeds. The paper's "
        "condition was not read.",
        "It holds if at lambda 8 no kind loses more than .001 decades of its relative residual a layer over the second half of 128 "
        "layers, so that it "
        "is bounded below at any depth one may build; in part if this is so for some kinds, or a larger lambda only makes the loss slower.",
        decide,
        shown=LOSS,
        thresholds=(STILL,),
        place=48,
        changed="Tokens begin near each other, at a hundredth of what they share: from unlike ones a residual near one hides what is "
        "lost.",
    ),
)
