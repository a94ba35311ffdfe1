"""Rotary positions: pairs of coordinates of queries and keys are rotated in proportion to the position, so scores depend on i - j (Su et
al. 2021).
"""

import math

import torch
from torch import Tensor

from rankfall.nets.positions._base import Position
from rankfall.nets.primitives import Sizes

TOUCHES = ("queries",)
SEES = "offsets"
ADMITS = "any"
LIMITS = {"log_n": (2, None)}


class Rope(Position):
    """The position with its options. `base` determines the slowest rotation: pair p of d/2 turns by base^(-2p/d) per position.

    `interpolated`: in a sequence of n tokens, longer than the trained length L, positions are multiplied by L / n, so that they stay within
    the trained range (Chen et al. 2023). `log_n`: queries are multiplied by log n / log(log_n), so that the entropy of attention depends
    less on the length (Su 2021).
    """

    def __init__(
        self, sizes: Sizes, *, base: float = 10000.0, interpolated: bool = False, log_n: int | None = None
    ) -> None:
        super().__init__()
        self.pairs, self.base = sizes.head_width // 2, base  # a last odd coordinate is not rotated
        self.trained, self.interpolated, self.log_n = sizes.length, interpolated, log_n

    def turn_pairs(self, x: Tensor) -> Tensor:
        """Rotate the pairs of coordinates of queries or keys (K, B, H, T, d)."""
        length = x.shape[-2]
        places = torch.arange(length, device=x.device, dtype=x.dtype)
        if self.interpolated and length > self.trained:
            places = places * (self.trained / length)
        speeds = self.base ** (-torch.arange(self.pairs, device=x.device, dtype=x.dtype) / max(self.pairs, 1))
        cos, sin = (places.unsqueeze(1) * speeds).cos(), (places.unsqueeze(1) * speeds).sin()  # (T, pairs)
        first, second, unrotated = x.split([self.pairs, self.pairs, x.shape[-1] - 2 * self.pairs], -1)
        return torch.cat([first * cos - second * sin, first * sin + second * cos, unrotated], -1)

    def rotate(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        scale = 1.0 if self.log_n is None else math.log(q.shape[-2]) / math.log(self.log_n)
        return scale * self.turn_pairs(q), self.turn_pairs(k)
