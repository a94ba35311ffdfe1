"""Multi-head attention with a root-mean-square norm of each head's output at each token (Li et al. 2026), with learned gains.

    O = [N(P_1 V_1), ..., N(P_H V_H)] W_O

A mean over many values is shorter than a single value. So a causal first token, which sees only itself, has a longer output than later
tokens, and the norm makes all of them equally long.
"""

from typing import Any

from torch import Tensor

from rankfall.nets.attentions._heads import Heads
from rankfall.nets.primitives import Sizes, constant

PROVIDES = ("weights", "heads")
OFFERS = ("queries", "products", "scores", "values", "lengths")


class HeadNormed(Heads):
    def __init__(self, sizes: Sizes, *parts: Any, eps: float = 1e-12) -> None:
        super().__init__(sizes, *parts)
        self.eps = eps
        self.gain = constant(sizes, 1, sizes.heads, 1, sizes.head_width, value=1.0)

    def contexts(self, weights: Tensor, x: Tensor) -> Tensor:
        context = super().contexts(weights, x)  # (K, B, H, T, d)
        return context * (context.square().mean(-1, keepdim=True) + self.eps).rsqrt() * self.gain
