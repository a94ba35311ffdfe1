"""Fixed absolute positions: X_i <- X_i + s p_i, with sinusoids p_i of the position (Vaswani et al. 2017). `scale`: s."""

import torch
from torch import Tensor

from rankfall.nets.positions._base import Position, sinusoids
from rankfall.nets.primitives import Sizes

TOUCHES = ("states",)
ADMITS = "any"
SEES = "places"


class Sinusoidal(Position):
    def __init__(self, sizes: Sizes, *, base: float = 10000.0, scale: float = 1.0) -> None:
        super().__init__()
        self.base, self.scale = base, scale

    def embed(self, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[2], device=x.device, dtype=x.dtype)
        return x + self.scale * sinusoids(places, x.shape[3], self.base)  # (K, B, T, D)
