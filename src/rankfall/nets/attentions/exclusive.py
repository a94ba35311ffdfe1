"""Exclusive attention (Zhai 2026): a head's output without the part along the token's own value.

    y_i = sum_j a_ij v_j,   z_i = y_i - (y_i . v_i) v_i / |v_i|^2

for each head. What a token knows of itself stays in the residual stream, and attention adds what it lacks.

Near identical rows, y_i is nearly parallel to v_i: what remains is as small as the differences between rows, and differs between rows at
the same order. The order of contraction is 1, also with softmax, and without a skip connection all outputs shrink with the residual.
"""

from torch import Tensor

from rankfall.nets.attentions._heads import Heads

PROVIDES = ("weights", "heads")
OFFERS = ("queries", "products", "scores", "values", "lengths")
EPS = 1e-12  # of a squared length: a value of zero has no direction


class Exclusive(Heads):
    def contexts(self, weights: Tensor, x: Tensor) -> Tensor:
        values = self.split(self.value(x))  # (K, B, H, T, d)
        context = self.position.context(weights, values)
        share = (context * values).sum(-1, keepdim=True) / (values.square().sum(-1, keepdim=True) + EPS)
        return context - share * values
