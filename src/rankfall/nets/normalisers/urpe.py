"""A = softmax(B) * C elementwise, C_ij = c_{i-j} learned per head (Luo et al. 2022).

Rows no longer sum to one, so that the network can determine positions. What is stored is c - 1, so that the usual start,
all c = 1, is zero; `random` draws it instead, like a position's weights: then an untrained network is not plain softmax.
Offsets beyond the trained length use the farthest trained one, or those beyond `clip` that of `clip`, for sequences of variable length.
`shared`: C by all layers, as published; false: each layer has its own.
"""

from torch import Tensor, nn

from rankfall.nets.positions._offsets import by_offset
from rankfall.nets.primitives import Initial, Sizes, constant, parameter

ROWS = "free"
SHIFT = "cancels"
EQUAL_ROWS = "one"
SEES = "offsets"
PROVIDES = ("factors by offset",)
LIMITS = {"clip": (1, None)}


class Urpe(nn.Module):
    def __init__(self, sizes: Sizes, *, random: bool = False, clip: int | None = None, shared: bool = True) -> None:
        super().__init__()
        self.shared = shared
        shape = (1, sizes.heads, 2 * (clip or sizes.length - 1) + 1)
        drawn = Initial("position", "weight", sizes.length)
        self.excess = parameter(sizes, *shape, initial=drawn) if random else constant(sizes, *shape, value=0.0)

    def factors(self, length: int) -> Tensor:
        """C (K, 1, H, T, T)"""
        return 1 + by_offset(self.excess, length)

    def forward(self, logits: Tensor) -> Tensor:
        return logits.softmax(-1) * self.factors(logits.shape[-1])
