from rankfall import Decision, Read
from studies.claims.attribution_truth.names import AMONG
from studies.claims.attribution_truth.reading import BY_HAND, IN_RANKS, better

THRESHOLDS = (BY_HAND, IN_RANKS)


def decide(read: Read) -> Decision:
    return better(read, first=("value zeroing",), second=("raw attention", "rollout"), among=AMONG)
