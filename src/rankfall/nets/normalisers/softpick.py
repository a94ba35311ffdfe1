"""a_ij = max(e^{b_ij} - 1, 0) / sum_j |e^{b_ij} - 1| over the tokens that i sees (Zuhri et al. 2025): scores below zero count in the
denominator alone, so a row's sum lies between 0 and 1, and a row without a positive score has zero weights.

`eps`: added to the denominator; the published code adds a small one, so that sums of rows depend on their scores everywhere.
"""

import torch
from torch import Tensor

ROWS = "free"
SHIFT = "cancels"
EQUAL_ROWS = "one"
LIMITS = {"eps": (0, None)}


def softpick(logits: Tensor, *, eps: float = 0.0) -> Tensor:
    hidden = logits == -torch.inf
    top = logits.amax(-1, keepdim=True).clamp_min(0.0)  # it cancels in the quotient
    above = (logits - top).exp() - (-top).exp()  # (e^b - 1) / e^top
    total = above.abs().masked_fill(hidden, 0.0).sum(-1, keepdim=True) + eps * (-top).exp()
    nonzero = total > 0
    return torch.where(nonzero, above.relu() / torch.where(nonzero, total, 1.0), 0.0)
