"""Post-norm with a strong skip connection and a norm before each sublayer (Chen and Wei 2026, Keel).

    X <- N(a X + SA(N'(X)));   X <- N(a X + MLP(N'(X)))

where N' are norms of the architecture's kind with separate parameters. The gradient that passes a norm and its skip connection is
multiplied by about a / sqrt(a^2 + 1) where a branch is as large as the state, 1 / sqrt(2) with usual post-norm.

`alpha`: a; null: the number of sublayers of the network, so that the product over all of them stays near one.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from rankfall.nets.blocks.attention import Attention, Map
from rankfall.nets.primitives import Dropout, Earlier, Sizes, bind_earlier, no_dropout

BREAKS = ("blocks",)
TOKENWISE = True
LIMITS = {"alpha": (0, None)}
REQUIRES = [
    ({"residual": "add"}, "the block scales its skip connection"),
    ({"norm_placement": "post"}, "it has both norms"),
]


class Highway(Attention):
    def __init__(self, *, sizes: Sizes, new_norm: Callable[[], Map], alpha: float | None = None, **parts: Any) -> None:
        super().__init__(**parts)
        self.before1 = new_norm()
        self.before2 = new_norm() if self.mlp is not None else None
        self.alpha = alpha if alpha is not None else sizes.depth * (1 if self.mlp is None else 2)

    def forward(self, x: Tensor, drop: Dropout = no_dropout, earlier: Earlier | None = None) -> Tensor:
        attention = bind_earlier(self.attention, earlier)
        x = self.norm1(self.alpha * x + drop(attention(self.before1(x), drop), f"{self.site}.attention"))
        if self.mlp is None or self.norm2 is None or self.before2 is None:
            return x
        return self.norm2(self.alpha * x + drop(self.mlp(self.before2(x)), f"{self.site}.mlp"))
