NAME = "sinkhorn_gaps_accumulate"
GAP = "log10 of how far column sums are from one, by layers"
EXACT = "sums of permutations"


def name_line(deviation: float, rounds: int) -> str:
    return f"scores of deviation {deviation:g}, {rounds} rounds"
