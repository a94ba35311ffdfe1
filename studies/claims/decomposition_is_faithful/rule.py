from rankfall import Decision, Read
from studies.claims.attribution_truth.reading import ALL_RIGHT, BY_HAND, IN_RANKS, compare_methods

THRESHOLDS = (BY_HAND, IN_RANKS, ALL_RIGHT)


def decide(read: Read) -> Decision:
    return compare_methods(read, first=("decomposed",), second=("norms",), exact=True)
