"""Retention (Sun et al. 2023): linear attention whose state decays by a fixed factor with every token.

    S_i = g_h S_(i-1) + v_i k_i^T,   o_i = S_i q_i / sqrt(d):    a_ij = g_h^(i-j) q_i . k_j / sqrt(d)

The heads' g_h are 1 - 2^-5, 1 - 2^-6, ... as published; `first`: the 5. The norm of each head and the gate behind it, which the
paper's block adds, are left out. With the position `rope` it is the published form with xPos's rotation.
"""

import math
from typing import Any

import torch
from torch import Tensor

from rankfall.nets.attentions._recurrent import Recurrent, decays
from rankfall.nets.primitives import Sizes

PROVIDES = ("weights", "heads", "values")
IGNORES = ("normaliser",)
OFFERS = ("queries", "values")
ROWS = "free"
MIXES = "states"
REQUIRES = [({"mask": "causal"}, "a recurrence runs from the first token to the last")]


class Retention(Recurrent):
    def __init__(self, sizes: Sizes, *parts: Any, first: float = 5.0) -> None:
        super().__init__(sizes, *parts)
        self.logs = [math.log1p(-(2.0 ** -(first + head))) for head in range(sizes.heads)]

    def pairs(self, x: Tensor, q: Tensor, k: Tensor) -> Tensor:
        decay = torch.stack([decays(q.new_full((q.shape[-2],), log)) for log in self.logs])  # (H, T, T)
        return q @ k.transpose(-1, -2) * self.head_width**-0.5 * decay
