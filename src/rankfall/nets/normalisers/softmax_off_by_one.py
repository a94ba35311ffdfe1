"""a_ij = e^{b_ij} / (1 + sum_j e^{b_ij}): a softmax that may also look at nothing, a key of score zero with the value zero."""

from torch import Tensor


def softmax_off_by_one(logits: Tensor) -> Tensor:
    top = logits.amax(-1, keepdim=True).clamp_min(0.0)  # of the scores and the silent zero; cancels in the quotient
    weights = (logits - top).exp()
    return weights / ((-top).exp() + weights.sum(-1, keepdim=True))
