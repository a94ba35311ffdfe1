from rankfall import Decision, Read
from studies.claims.character_models.compared import LESS, compare_losses
from studies.claims.character_models.names import DERF

THRESHOLDS = (LESS,)


def decide(read: Read) -> Decision:
    return compare_losses(read("evidence"), DERF)
