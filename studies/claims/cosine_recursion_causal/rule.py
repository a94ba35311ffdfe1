from rankfall import Decision, Read
from studies.claims.cosine_recursion.reading import CLOSE_CAUSAL, decide_shared


def decide(read: Read) -> Decision:
    return decide_shared(read, close_to=CLOSE_CAUSAL)
