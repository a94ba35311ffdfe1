"""A learned bias for each distance i - j, per head, shared by all layers: b_ij <- b_ij + m_{i-j} (T5 without buckets)."""

from torch import Tensor

from rankfall.nets.positions._base import Position, by_offset
from rankfall.nets.primitives import Initial, Sizes, parameter

TOUCHES = ("scores",)
PROVIDES = ("bias by offset",)
SEES = "offsets"
ADMITS = "any"


class Toeplitz(Position):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        initial = Initial("position", "weight", sizes.length)
        self.table = parameter(sizes, 1, sizes.heads, 2 * sizes.length - 1, initial=initial)  # (K, 1, H, 2T - 1)

    def bias(self, logits: Tensor) -> Tensor:
        return logits + by_offset(self.table, logits.shape[-1])
