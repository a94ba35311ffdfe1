"""Norms around the branch (Ding et al. 2021, sandwich; Kim et al. 2025, peri): the outputs of attention and MLP are normed before addition.

pre:   X <- residual(X, N'(SA(N(X))));   X <- mlp_residual(X, N'(MLP(N(X))))
post:  X <- N(residual(X, N'(SA(X))));   X <- N(mlp_residual(X, N'(MLP(X))))

where N' are norms of the architecture's kind too, each with separate parameters.
"""

from collections.abc import Callable
from typing import Any

from rankfall.nets.blocks.attention import Attention, Map

BREAKS = ("blocks",)
TOKENWISE = True


class Peri(Attention):
    def __init__(self, *, new_norm: Callable[[], Map], **parts: Any) -> None:
        super().__init__(**parts)
        self.after1 = new_norm()
        self.after2 = new_norm() if self.mlp is not None else None
