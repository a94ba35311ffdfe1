"""a_ij = e^{b_ij} / (1 + sum_j e^{b_ij}): a softmax with one more key, whose score and value are zero, so that a row's sum may be below
one.
"""

from torch import Tensor

ROWS = "free"
SHIFT = "counts"


def softmax_off_by_one(logits: Tensor) -> Tensor:
    # the maximum over the scores and the extra zero; it cancels in the quotient
    top = logits.amax(-1, keepdim=True).clamp_min(0.0)
    weights = (logits - top).exp()
    return weights / ((-top).exp() + weights.sum(-1, keepdim=True))
