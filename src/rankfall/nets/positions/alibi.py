"""A fixed penalty on distance with a different slope for each head (Press et al. 2022): b_ij <- b_ij - s_h |i - j|.

With the causal mask this is the published form, in which a query sees only earlier tokens; without it, the symmetric form. If the number of
heads H is a power of two, s_h = 2^(-8h/H), h = 1 .. H. Otherwise the slopes of the next smaller power of two come first, then every other
slope of the next larger.
"""

import math

import torch
from torch import Tensor

from rankfall.nets.positions._base import Position
from rankfall.nets.primitives import Sizes

TOUCHES = ("scores",)
PROVIDES = ("bias by offset",)
ADMITS = "any"
SEES = "distances"


class Alibi(Position):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.slopes = slopes(sizes.heads)

    def bias(self, logits: Tensor) -> Tensor:
        places = torch.arange(logits.shape[-1], device=logits.device, dtype=logits.dtype)
        distance = (places.unsqueeze(1) - places).abs()  # (T, T)
        # created on the device: a copy would wait for a GPU
        slopes = torch.stack([logits.new_full((), slope) for slope in self.slopes])
        return logits - slopes.view(-1, 1, 1) * distance  # (K, B, H, T, T)


def slopes(heads: int) -> list[float]:
    smaller = 2 ** int(math.log2(heads))
    first = [2 ** (-8 * head / smaller) for head in range(1, smaller + 1)]
    return first + ([] if smaller == heads else slopes(2 * smaller)[::2][: heads - smaller])
