"""A selective state space model in the form of Mamba-2 (Dao and Gu 2024): the token determines the decay and the size of the write.

    S_i = a_i S_(i-1) + t_i v_i k_i^T,   o_i = S_i q_i + D_h v_i:    a_ij = q_i . k_j t_j prod_(l = j+1 .. i) a_l,   plus D_h for j = i
    t_i = softplus(X_i w_t + b_t),   a_i = e^(-t_i A_h)

per head. In the paper's letters queries are C, keys B, values X and t the step. The learned A_h start at 1, 2, ..., and D_h at 1. Each head
has its own B and C of d dimensions. The short convolution before, and gate and norm behind, which the paper's block adds, are left out.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from rankfall.nets.attentions._recurrent import Recurrent, decays
from rankfall.nets.primitives import Linear, Sizes, constant

PROVIDES = ("weights", "heads", "values")
IGNORES = ("normaliser",)
OFFERS = ("queries", "values")
ROWS = "free"
MIXES = "states"
REQUIRES = [({"mask": "causal"}, "a recurrence runs from the first token to the last")]


class Selective(Recurrent):
    def __init__(self, sizes: Sizes, *parts: Any) -> None:
        super().__init__(sizes, *parts)
        self.step = Linear(sizes, sizes.width, sizes.heads, "step")
        self.starts = [math.log(1.0 + head) for head in range(sizes.heads)]
        self.speed = constant(sizes, 1, sizes.heads, 1, value=0.0)  # (K, 1, H, 1): log A_h minus its initial value
        self.through = constant(sizes, 1, sizes.heads, 1, 1, value=1.0)  # D_h (K, 1, H, 1, 1)

    def pairs(self, x: Tensor, q: Tensor, k: Tensor) -> Tensor:
        step = softplus(self.step(x)).transpose(2, 3)  # t (K, B, H, T)
        starts = torch.stack([x.new_full((), start) for start in self.starts]).view(-1, 1)
        decay = decays(-step * (starts + self.speed).exp())  # (K, B, H, T, T)
        identity = torch.eye(x.shape[2], dtype=x.dtype, device=x.device)
        return q @ k.transpose(-1, -2) * step.unsqueeze(-2) * decay + self.through * identity
