from rankfall import Decision, Read
from studies.claims.character_models.compared import LESS, compare_losses
from studies.claims.character_models.names import DELTA

THRESHOLDS = (LESS,)


def decide(read: Read) -> Decision:
    return compare_losses(read("evidence"), DELTA)
