"""a_ij = softmax_j(b_ij) - 1 / n_i, n_i the number of tokens that i sees: rows sum to zero, so the mean value is subtracted (Saada et
al. 2024, A - 1 1^T / n, against the loss of rank in long sequences).
"""

import torch
from torch import Tensor

ROWS = "zero"
SHIFT = "cancels"


def zero_sum(logits: Tensor) -> Tensor:
    visible = (logits != -torch.inf).to(logits.dtype)
    return logits.softmax(-1) - visible / visible.sum(-1, keepdim=True)
