"""A = softmax(B) * C elementwise, C_ij = c_{i-j} learned per head (Luo et al. 2022).

Rows no longer sum to one, so the network can determine positions. The parameter is c - 1, so that the usual start, all c = 1, is zero;
`random` draws it instead, like a position's weights, and an untrained network is then not plain softmax. Offsets beyond the trained length
use the farthest trained offset, and with `clip` those beyond `clip` use that of `clip`, for sequences of variable length. `shared`: one C
for all layers, as published; false: one for each layer.
"""

from torch import Tensor, nn

from rankfall.nets.positions._base import by_offset
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
        """Return C (K, 1, H, T, T)."""
        return 1 + by_offset(self.excess, length)

    def forward(self, logits: Tensor) -> Tensor:
        return logits.softmax(-1) * self.factors(logits.shape[-1])
