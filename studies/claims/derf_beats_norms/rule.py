from rankfall import Decision, Read
from studies.claims.character_models.names import DERF
from studies.claims.character_models.reading import LESS, compare_losses

THRESHOLDS = (LESS,)


def decide(read: Read) -> Decision:
    return compare_losses(read("evidence"), DERF)
