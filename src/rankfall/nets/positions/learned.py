"""Learned absolute positions: X_i <- X_i + p_i."""

from torch import Tensor

from rankfall.errors import RankfallError
from rankfall.nets.positions._base import Position
from rankfall.nets.primitives import Initial, Linear, Sizes, parameter

TOUCHES = ("states",)
SEES = "places"
ADMITS = "trained"


class Learned(Position):
    """The position with its options. `mapped`: a linear map follows, X_i <- (X_i + p_i) W + b, as in the published networks."""

    def __init__(self, sizes: Sizes, *, mapped: bool = False) -> None:
        super().__init__()
        initial = Initial("embedding", "weight", sizes.width)
        self.table = parameter(sizes, 1, sizes.length, sizes.width, initial=initial)  # (K, 1, T, D)
        self.map = Linear(sizes, sizes.width, sizes.width, "embedding_map") if mapped else None

    def embed(self, x: Tensor) -> Tensor:
        if x.shape[2] > self.table.shape[2]:
            raise RankfallError(
                f"learned positions: {x.shape[2]} tokens, but only {self.table.shape[2]} positions were trained"
            )
        x = x + self.table[:, :, : x.shape[2]]
        return x if self.map is None else self.map(x)
