"""a_ij = f(b_ij) / sqrt(sum_j f(b_ij)^2), f(b) = b / (1 + e^{-b}): rows of length one whose entries may be negative (Su 2022)."""

import torch
from torch import Tensor
from torch.nn.functional import silu

ROWS = "free"
SHIFT = "cancels"


def swish_l2(logits: Tensor) -> Tensor:
    masked = logits == -torch.inf  # where f would be -inf * 0
    weights = silu(logits.masked_fill(masked, 0.0))  # f(0) = 0
    return weights / weights.norm(dim=-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
