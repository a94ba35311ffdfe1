from rankfall import Decision, Read
from studies.claims.parts import ALL_OR_EARLIER as MASKS
from studies.claims.value_residuals.reading import EASED, KEPT, STILL, decide_shared

THRESHOLDS = (KEPT, STILL, EASED)


def decide(read: Read) -> Decision:
    return decide_shared(read, name=".4 of the difference, beside the output", theirs=tuple(MASKS))
