from rankfall import Decision, Read
from studies.claims.attribution_truth.reading import BY_HAND, IN_RANKS, compare_methods

THRESHOLDS = (BY_HAND, IN_RANKS)


def decide(read: Read) -> Decision:
    return compare_methods(read, first=("rollout", "flow"), second=("raw attention",))
