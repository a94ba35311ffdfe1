"""A learned bias for each bucket of offsets, per head, shared by all layers (Raffel et al. 2020): b_ij <- b_ij + m_bucket(i-j).

Half of the buckets hold one of the smallest offsets each. The other offsets share the rest, whose width grows in proportion to the offset
up to `farthest`. `two_sided`: one half of the buckets is for earlier tokens, the other for later tokens; false, as in a decoder: all are
for earlier tokens, and later tokens count as offset 0.
"""

import math

import torch
from torch import Tensor

from rankfall.errors import RankfallError
from rankfall.nets.positions._base import Position, by_offset
from rankfall.nets.primitives import Initial, Sizes, parameter

TOUCHES = ("scores",)
PROVIDES = ("bias by offset",)
ADMITS = "any"
SEES = "offsets"
LIMITS = {"buckets": (4, None), "farthest": (2, None)}
NUDGE = 1e-9  # so that rounding does not move the first offset of a bucket into the one before


class T5(Position):
    def __init__(self, sizes: Sizes, *, buckets: int = 32, farthest: int = 128, two_sided: bool = True) -> None:
        super().__init__()
        side = buckets // 2 if two_sided else buckets
        if farthest <= side // 2:
            raise RankfallError(
                f"position t5: farthest is {farthest}, but the first {side // 2} offsets of a side have separate buckets; "
                f"allowed: more than {side // 2}"
            )
        self.side, self.farthest, self.two_sided = side, farthest, two_sided
        initial = Initial("position", "weight", sizes.length)
        self.table = parameter(sizes, 1, sizes.heads, 2 * side if two_sided else side, initial=initial)  # (K, 1, H, N)

    def buckets(self, offset: Tensor) -> Tensor:
        """Return the bucket of each offset i - j."""
        small = self.side // 2
        far = offset.abs() if self.two_sided else offset.clamp_min(0)
        grown = (far.clamp_min(1).double() / small).log() / math.log(self.farthest / small) * (self.side - small)
        large = small + (grown + NUDGE).floor().long()
        bucket = torch.where(far < small, far, large.clamp(max=self.side - 1))
        return bucket + self.side * (offset < 0) if self.two_sided else bucket

    def bias(self, logits: Tensor) -> Tensor:
        length = logits.shape[-1]
        offset = torch.arange(1 - length, length, device=logits.device)
        return logits + by_offset(self.table[..., self.buckets(offset)], length)
