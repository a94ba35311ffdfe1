"""Rotary positions: pairs of coordinates of queries and keys are rotated in proportion to the position, so scores depend on i - j (Su et
al. 2021).
"""

import torch
from torch import Tensor

from rankfall.nets.positions._base import Position
from rankfall.nets.primitives import Sizes

TOUCHES = ("queries",)
SEES = "offsets"
ADMITS = "any"


class Rope(Position):
    """`base` determines the slowest rotation: coordinate pair p of d/2 turns by base^(-2p/d) per position."""

    def __init__(self, sizes: Sizes, *, base: float = 10000.0) -> None:
        super().__init__()
        self.pairs, self.base = sizes.head_width // 2, base  # a last odd coordinate stays as it is

    def turned(self, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[-2], device=x.device, dtype=x.dtype)
        speeds = self.base ** (-torch.arange(self.pairs, device=x.device, dtype=x.dtype) / max(self.pairs, 1))
        cos, sin = (places.unsqueeze(1) * speeds).cos(), (places.unsqueeze(1) * speeds).sin()  # (T, pairs)
        first, second, rest = x.split([self.pairs, self.pairs, x.shape[-1] - 2 * self.pairs], -1)
        return torch.cat([first * cos - second * sin, first * sin + second * cos, rest], -1)

    def rotate(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return self.turned(q), self.turned(k)
