"""A learned bias for each distance |i - j|, per head, shared by all layers: the network cannot distinguish left from right."""

import torch
from torch import Tensor

from rankfall.nets.positions._base import Position, by_offset
from rankfall.nets.primitives import Initial, Sizes, parameter

TOUCHES = ("scores",)
PROVIDES = ("bias by offset",)
SEES = "distances"
ADMITS = "any"


class Symmetric(Position):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        initial = Initial("position", "weight", sizes.length)
        self.table = parameter(sizes, 1, sizes.heads, sizes.length, initial=initial)  # (K, 1, H, T)

    def bias(self, logits: Tensor) -> Tensor:
        mirrored = torch.cat([self.table.flip(-1), self.table[..., 1:]], -1)  # distances -(T-1) .. T-1
        return logits + by_offset(mirrored, logits.shape[-1])
