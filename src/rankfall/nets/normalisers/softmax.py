"""a_ij = e^{b_ij} / sum_j e^{b_ij}: rows sum to one."""

from torch import Tensor

ROWS = "one"
SHIFT = "cancels"


def softmax(logits: Tensor) -> Tensor:
    return logits.softmax(-1)
