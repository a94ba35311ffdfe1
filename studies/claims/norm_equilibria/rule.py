from rankfall import Decision, Read, Threshold, evidence_rows, judge
from studies.claims.norm_equilibria.names import DISTURBED, EXACT, MOVED, OTHERS, RANK

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
