"""A learned vector for each offset, added to the keys (Shaw et al. 2018, without their values): q_i . (k_j + a_{i-j}) / sqrt(d).

All heads share the vectors. `reach`: offsets beyond it use the farthest one. `shared`: all layers share them too; false: each layer has its
own, as published.
"""

from torch import Tensor

from rankfall.nets.positions._base import Position, by_places, rows_of
from rankfall.nets.primitives import Initial, Sizes, parameter

TOUCHES = ("products",)
ADMITS = "any"
SEES = "offsets"
LIMITS = {"reach": (1, None)}


class ShawKeys(Position):
    def __init__(self, sizes: Sizes, *, reach: int = 16, shared: bool = True) -> None:
        super().__init__()
        self.shared = shared
        initial = Initial("position", "weight", sizes.head_width)
        self.keys = parameter(sizes, 1, 1, 2 * reach + 1, sizes.head_width, initial=initial)  # (K, 1, 1, 2r + 1, d)

    def products(self, q: Tensor, k: Tensor) -> Tensor:
        offsets = rows_of(self.keys, q.shape[-2]).transpose(-1, -2)  # (K, 1, 1, d, 2T - 1)
        return q @ k.transpose(-1, -2) + by_places(q @ offsets)
