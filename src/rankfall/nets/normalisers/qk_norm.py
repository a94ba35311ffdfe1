"""Queries and keys normed before their products: a_ij = softmax_j( s g(n_i) N(q_i) . N(k_j) / sqrt(d) ) (Henry et al. 2020; Dehghani et
al. 2023), so that scores stay bounded however long queries and keys become.

`norm`: N, over the d coordinates of a head and with a learned gain for each coordinate, the same in all heads: `rms`, or `layer`, which
first subtracts the mean. `scale`, `factor`, `learned`, `shared`: as in `score_scale`.
"""

from typing import Literal

from torch import Tensor

from rankfall.nets.normalisers.score_scale import Scale, ScoreScale
from rankfall.nets.primitives import Sizes, constant

ROWS = "one"
SHIFT = "cancels"
TOUCHES = ("lengths",)


class QkNorm(ScoreScale):
    def __init__(
        self,
        sizes: Sizes,
        *,
        norm: Literal["rms", "layer"] = "rms",
        eps: float = 1e-12,
        scale: Literal["one", "log_n", "sqrt_log_n"] = "one",
        factor: float = 1.0,
        learned: bool = False,
        shared: bool = False,
    ) -> None:
        chosen: Scale = scale
        super().__init__(sizes, scale=chosen, factor=factor, learned=learned, shared=shared)
        self.norm, self.eps = norm, eps
        self.query = constant(sizes, 1, 1, 1, sizes.head_width, value=1.0)  # gains (K, 1, 1, 1, d)
        self.key = constant(sizes, 1, 1, 1, sizes.head_width, value=1.0)

    def plain(self, x: Tensor) -> Tensor:
        """Normalise vectors (K, B, H, T, d) to length sqrt(d)."""
        x = x - x.mean(-1, keepdim=True) if self.norm == "layer" else x
        return x * (x.square().mean(-1, keepdim=True) + self.eps).rsqrt()

    def prepare(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return self.plain(q) * self.query, self.plain(k) * self.key
