"""Polar positions (Gopalakrishnan et al. 2025, PoPE): the content gives lengths and the position gives angles.

    q_i . k_j  ->  sum_c s(q_ic) s(k_jc) cos((i - j) base^(-c / d) - p_c),   s(x) = log(1 + e^x)

over the d coordinates c = 0, 1, ... of a head, with angles p learned by head. Rotary positions rotate pairs whose own angles depend on the
content, so the offset at which a pair scores highest does too. Here it does not.
"""

import torch
from torch import Tensor
from torch.nn.functional import softplus

from rankfall.nets.positions._base import Position
from rankfall.nets.primitives import Initial, Sizes, parameter

TOUCHES = ("products",)
SEES = "offsets"
ADMITS = "any"


class Polar(Position):
    """The position with its options. `base` determines the slowest coordinate: coordinate c turns by base^(-c/d) per position.

    `spread`: the deviation of angles p before training, 0 for none. The published uniform angles have 2 pi / sqrt(12), 1.8.
    """

    def __init__(self, sizes: Sizes, *, base: float = 10000.0, spread: float = 0.0) -> None:
        super().__init__()
        self.base = base
        initial = Initial("position", "weight" if spread else "constant", sizes.head_width, deviation=spread or None)
        self.angle = parameter(sizes, 1, sizes.heads, 1, sizes.head_width, initial=initial)  # p (K, 1, H, 1, d)

    def products(self, q: Tensor, k: Tensor) -> Tensor:
        q, k = self.points(q, k)
        return q @ k.transpose(-1, -2)

    def points(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries and keys (..., T, d) as points of a plane for each coordinate (..., T, 2 d)."""
        length, width = q.shape[-2:]
        places = torch.arange(length, device=q.device, dtype=q.dtype).unsqueeze(1)
        turn = places * self.base ** (-torch.arange(width, device=q.device, dtype=q.dtype) / width)  # (T, d)
        return as_points(softplus(q), turn), as_points(softplus(k), turn + self.angle)


def as_points(length: Tensor, angle: Tensor) -> Tensor:
    """Return the points with these lengths and angles (..., T, d), all first coordinates before all second ones: (..., T, 2 d)."""
    return torch.cat([length * angle.cos(), length * angle.sin()], -1)
