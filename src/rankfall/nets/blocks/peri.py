"""Norms around the branch (Ding et al. 2021, sandwich; Kim et al. 2025, peri): the outputs of attention and MLP are normed before addition.

pre:   X <- residual(X, N'(SA(N(X))));   X <- mlp_residual(X, N'(MLP(N(X))))
post:  X <- N(residual(X, N'(SA(X))));   X <- N(mlp_residual(X, N'(MLP(X))))

where N' are norms of the architecture's kind too, each with separate parameters.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from rankfall.nets.blocks.attention import Attention, Map
from rankfall.nets.primitives import Dropout, Earlier, bind_earlier, no_dropout

BREAKS = ("blocks",)
TOKENWISE = True


class Peri(Attention):
    def __init__(self, *, new_norm: Callable[[], Map], **parts: Any) -> None:
        super().__init__(**parts)
        self.after1 = new_norm()
        self.after2 = new_norm() if self.mlp is not None else None

    def forward(self, x: Tensor, drop: Dropout = no_dropout, earlier: Earlier | None = None) -> Tensor:
        pre, attention = self.placement == "pre", bind_earlier(self.attention, earlier)
        branch = self.after1(drop(attention(self.norm1(x) if pre else x, drop), f"{self.site}.attention"))
        x = bind_earlier(self.residual, earlier)(x, branch)
        x = x if pre else self.norm1(x)
        if self.mlp is None or self.norm2 is None or self.after2 is None:
            return x
        branch = self.after2(drop(self.mlp(self.norm2(x) if pre else x), f"{self.site}.mlp"))
        x = bind_earlier(self.mlp_residual, earlier)(x, branch)
        return x if pre else self.norm2(x)
