"""The claim with its source, and the rule that decides it."""

from __future__ import annotations

from rankfall.claims.norm_equilibria.names import DISTURBED, EXACT, MOVED, NAME, OTHERS, RANK
from rankfall.report.claim import Claim, Decision, Read, Threshold, evidence_rows, judge

STILL = Threshold(-10.0, "below", MOVED, EXACT)


def decide(read: Read) -> Decision:
    rows = read("evidence")
    exact, moved = evidence_rows(rows, RANK, EXACT), evidence_rows(rows, MOVED, EXACT)
    kept = evidence_rows(rows, RANK, DISTURBED)
    still = exact[(exact.value == exact.x)].x.unique()
    there = sorted(
        x
        for x in still
        if bool((moved[moved.x == x].value < STILL).all()) and bool((exact[exact.x == x].value == x).all())
    )
    stable = sorted(x for x in kept.x.unique() if bool((kept[kept.x == x].value == x).all()))
    all_ranks = sorted(exact.x.unique())
    others = evidence_rows(rows, OTHERS).groupby("x").value.max()
    text = (
        f"Constructed tokens of rank {_say(there)} of {len(all_ranks)} are equilibria (they move by less than 1e{STILL:.0f}); after a "
        f"disturbance of "
        f"1e-6 rank {_say(stable)} is kept. Random tokens end with rank at most {others.get(0.0, 0):.0f} (V the identity), "
        f"{others.get(1.0, 0):.0f} (orthogonal), {others.get(2.0, 0):.0f} (random)."
    )
    return judge(text, len(stable), holds=there == all_ranks, in_part=len(there) > 1, contradicted=True)


def _say(ranks: list[float]) -> str:
    return ", ".join(f"{rank:.0f}" for rank in ranks) or "none"


CLAIMS = (
    Claim(
        NAME,
        "With a norm after attention and suitable value maps there are equilibria of every rank from one to full.",
        "Wu, Ajorlou, Wang, Jegelka and Jadbabaie: On the role of attention masks and LayerNorm in transformers, 2024",
        "https://arxiv.org/abs/2405.18781",
        ("second-hand",),
        "6 tokens of width 6, queries and keys the identity, norms to length one, value maps constructed for each rank (ours), 5 "
        "seeds; then 2,000 "
        "layers after a disturbance of 1e-6, and from random tokens with other value maps.",
        "Tokens of a rank are an equilibrium if a layer moves no entry by 1e-10 and the rank is exact. It holds if this is so for every "
        "rank, in part for some above one. The number is how many ranks are still there 2,000 layers after a disturbance: the statement "
        "says that equilibria exist, not that they are stable.",
        decide,
        shown=RANK,
        thresholds=(STILL,),
        place=46,
        changed="The rule first asked that equilibria be kept after a disturbance, by which only rank one passed. The statement says "
        "that they exist, not that they are stable: existence decides now, and what is stable is counted beside it.",
    ),
)
