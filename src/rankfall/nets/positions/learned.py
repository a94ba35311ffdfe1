"""Learned absolute positions: X_i <- X_i + p_i."""

from torch import Tensor

from rankfall.nets.positions._base import Position
from rankfall.nets.primitives import Initial, Sizes, parameter


class Learned(Position):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.table = parameter(
            sizes, 1, sizes.length, sizes.width, initial=Initial("embedding", "weight", sizes.width)
        )  # (K, 1, T, D)

    def embed(self, x: Tensor) -> Tensor:
        return x + self.table[:, :, : x.shape[2]]
