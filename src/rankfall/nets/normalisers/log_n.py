"""A softmax whose entropy depends less on the length: a_ij = softmax_j( b_ij log n_i / log N ), n_i the number of tokens that i sees (Su
2021). `length`: N, at which it equals the usual softmax.
"""

import math

import torch
from torch import Tensor

ROWS = "one"
SHIFT = "cancels"
LIMITS = {"length": (2, None)}


def log_n(logits: Tensor, *, length: int = 512) -> Tensor:
    return by_log_n(logits, math.log(length)).softmax(-1)


def by_log_n(logits: Tensor, unit: float) -> Tensor:
    """Multiply scores by log n_i / unit. -inf stays, also in rows with one visible token, where log n_i is zero."""
    hidden = logits == -torch.inf
    visible = (~hidden).sum(-1, keepdim=True).to(logits.dtype)  # n_i (K, B, H, T, 1)
    return (logits.masked_fill(hidden, 0.0) * (visible.log() / unit)).masked_fill(hidden, -torch.inf)
