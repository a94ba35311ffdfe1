"""Gated linear attention (Yang et al. 2024): each coordinate of a key decays by a factor that depends on the token's state.

    S_i = S_(i-1) Diag(g_i) + v_i k_i^T,   o_i = S_i q_i / sqrt(d):    a_ij = sum_c q_ic k_jc prod_(l = j+1 .. i) g_lc / sqrt(d)
    g_i = sigmoid(X_i W_g + b_g)^(1 / slowness)

per head. `slowness`: 16 as published. W_g is one map of full rank; the paper's has rank 16. The gate behind the heads and their norm, which
the paper's block adds, are left out.
"""

from typing import Any

from torch import Tensor
from torch.nn.functional import logsigmoid

from rankfall.nets.attentions._recurrent import Recurrent, decays
from rankfall.nets.primitives import Linear, Sizes

PROVIDES = ("weights", "heads", "values")
IGNORES = ("normaliser",)
OFFERS = ("queries", "values")
ROWS = "free"
MIXES = "states"
REQUIRES = [({"mask": "causal"}, "a recurrence runs from the first token to the last")]


class GatedLinear(Recurrent):
    def __init__(self, sizes: Sizes, *parts: Any, slowness: float = 16.0) -> None:
        super().__init__(sizes, *parts)
        self.gate = Linear(sizes, sizes.width, sizes.heads * sizes.head_width, "gate")
        self.slowness = slowness

    def pairs(self, x: Tensor, q: Tensor, k: Tensor) -> Tensor:
        logs = logsigmoid(self.split(self.gate(x))).transpose(-1, -2) / self.slowness  # (K, B, H, d, T)
        decay = decays(logs)  # (K, B, H, d, T, T)
        products = q.transpose(-1, -2).unsqueeze(-1) * k.transpose(-1, -2).unsqueeze(-2)  # (K, B, H, d, T, T)
        return (products * decay).sum(-3) * self.head_width**-0.5
