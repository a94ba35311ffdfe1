from rankfall import Decision, Read
from studies.claims.stabilisers.names import GATE
from studies.claims.stabilisers.reading import EXACT, decide_shared

THRESHOLDS = (EXACT,)


def decide(read: Read) -> Decision:
    return decide_shared(read, GATE)
