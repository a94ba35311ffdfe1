"""a_ij = e^{b_ij} / sqrt(sum_j e^{2 b_ij}): rows have length one, and their sum, in [1, sqrt n], depends on the scores (Su 2022)."""

from torch import Tensor

ROWS = "free"
SHIFT = "cancels"


def l2(logits: Tensor) -> Tensor:
    weights = (logits - logits.amax(-1, keepdim=True)).exp()  # the shift cancels in the quotient
    return weights / weights.norm(dim=-1, keepdim=True)
