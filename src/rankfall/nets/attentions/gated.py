"""Multi-head attention with an output gate (Qiu et al. 2025): a sigmoid of the token's state multiplies the output of its heads.

    O = (sigmoid(X W_g) * [P_1 V_1, ..., P_H V_H]) W_O

`gate`: `elementwise`, one number for each coordinate of a head's output, or `head`, one for each head. The map W_g has no bias.

Near identical rows, the gate differs between rows by O(eps) and multiplies a term of order one. It passes R on like a skip connection, so
the order of contraction is at most 1, also with softmax.
"""

from typing import Any, Literal

from torch import Tensor

from rankfall.nets.attentions._heads import Heads
from rankfall.nets.primitives import Linear, Sizes

PROVIDES = ("weights", "heads")
OFFERS = ("queries", "products", "scores", "values", "lengths")
ROWS = "normaliser"
MIXES = "scores"
GATED = True


class Gated(Heads):
    def __init__(self, sizes: Sizes, *parts: Any, gate: Literal["elementwise", "head"] = "elementwise") -> None:
        super().__init__(sizes, *parts)
        width = sizes.head_width if gate == "elementwise" else 1
        self.gate = Linear(sizes, sizes.width, sizes.heads * width, "gate", bias=False)

    def contexts(self, weights: Tensor, x: Tensor) -> Tensor:
        gate = self.gate(x).sigmoid()  # (K, B, T, H*d) or (K, B, T, H)
        gate = gate.view(*x.shape[:-1], self.heads, -1).transpose(2, 3)  # (K, B, H, T, d) or (K, B, H, T, 1)
        return super().contexts(weights, x) * gate
