from rankfall import Decision, Read
from studies.claims.attribution_truth.reading import ALL_RIGHT, BY_HAND, IN_RANKS, better

THRESHOLDS = (BY_HAND, IN_RANKS, ALL_RIGHT)


def decide(read: Read) -> Decision:
    return better(read, first=("decomposed",), second=("norms",), exact=True)
