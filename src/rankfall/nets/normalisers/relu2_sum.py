"""a_ij = r_ij / sum_j r_ij with r = max(b, 0)^2: rows sum to one, and a factor common to a row's scores cancels (Su 2022).

A row without a positive score has equal weights for all tokens that it sees, the limit of (r_ij + e) / sum_j (r_ij + e) for small e.
"""

import torch
from torch import Tensor

ROWS = "one"
SHIFT = "cancels"


def relu2_sum(logits: Tensor) -> Tensor:
    top = logits.amax(-1, keepdim=True)  # dividing by it keeps squares from overflow and underflow
    positive = top > 0
    weights = (logits.relu() / torch.where(positive, top, 1.0)).square()
    weights = torch.where(positive, weights, (logits != -torch.inf).to(logits.dtype))
    return weights / weights.sum(-1, keepdim=True)
