from rankfall import Decision, Read
from studies.claims.value_residuals.reading import EASED, KEPT, STILL, decide_shared

THRESHOLDS = (KEPT, STILL, EASED)


def decide(read: Read) -> Decision:
    return decide_shared(read, name="half of the values", theirs=("earlier tokens",))
