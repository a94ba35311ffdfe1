"""Differential attention (Ye et al. 2024): the difference of two softmax maps, which removes what they have in common.

    O = sum_h (1 - l_0) N( (P_h - lambda P'_h) V_h ) W_O,h,    P = softmax(Q K^T / sqrt(d)),    P' = softmax(Q' K'^T / sqrt(d))
    lambda = e^{a . b} - e^{a' . b'} + l_0,    l_0 = .8 - .6 e^{-.3 (l - 1)} in layer l

with vectors a, b, a', b' of d numbers that all heads of a layer share, and N the root-mean-square norm of each head's d outputs with a
learned gain. Rows of weights sum to 1 - lambda. `start`: l_0; null: by the layer, as above. `norm`: false leaves out N and 1 - l_0.
Queries and keys of a head have d dimensions here, like its values, while the published code halves the number of heads.

Rows of both maps sum to one, so the order of contraction is that of softmax, and equal tokens stay equal.
"""

import math
from typing import Any

from torch import Tensor

from rankfall.nets.attentions._heads import Heads
from rankfall.nets.normalisers.softmax import softmax
from rankfall.nets.primitives import Initial, Linear, Sizes, constant, parameter

PROVIDES = ("weights", "heads")
IGNORES = ("normaliser",)
OFFERS = ("queries", "products", "scores", "values")
ROWS = "constant"
MIXES = "scores"
WEIGHTS = "softmax"
SPREAD = 0.1  # initial standard deviation of a, b, a', b'


class Differential(Heads):
    def __init__(
        self,
        sizes: Sizes,
        position: Any,
        normaliser: object,
        *parts: Any,
        start: float | None = None,
        norm: bool = True,
        eps: float = 1e-12,
    ) -> None:
        super().__init__(sizes, position, softmax, *parts)
        inner, d = sizes.heads * sizes.head_width, sizes.head_width
        self.other_query = Linear(sizes, sizes.width, inner, "query")
        self.other_key = Linear(sizes, sizes.width, inner, "key")
        self.start = 0.8 - 0.6 * math.exp(-0.3 * (max(sizes.layer, 1) - 1)) if start is None else start
        drawn = Initial("share", "weight", d, deviation=SPREAD)
        self.shares = parameter(sizes, 4, d, initial=drawn)  # a, b, a', b' (K, 4, d)
        self.gain = constant(sizes, 1, 1, 1, d, value=1.0) if norm else None  # (K, 1, 1, 1, d)
        self.eps = eps

    def share(self) -> Tensor:
        """Return lambda (K, 1, 1, 1, 1)."""
        a, b, c, d = self.shares.unbind(1)  # (K, d)
        return ((a * b).sum(-1).exp() - (c * d).sum(-1).exp() + self.start).view(-1, 1, 1, 1, 1)

    def other_logits(self, x: Tensor) -> Tensor:
        """Return the scores of the second map, as `logits` does for the first."""
        return self.scores(self.split(self.other_query(x)), self.split(self.other_key(x)))

    def weights(self, x: Tensor) -> Tensor:
        return softmax(self.logits(x)) - self.share() * softmax(self.other_logits(x))

    def contexts(self, weights: Tensor, x: Tensor) -> Tensor:
        context = super().contexts(weights, x)  # (K, B, H, T, d)
        if self.gain is None:
            return context
        length = (context.square().mean(-1, keepdim=True) + self.eps).rsqrt()
        return context * length * self.gain * (1 - self.start)
