"""A learned vector for each symbol and a linear map after it, as in the published networks without positions."""

from torch import Tensor

from rankfall.nets.embeddings.token import Token
from rankfall.nets.primitives import Linear, Sizes

ACCEPTS = "tokens"


class MappedToken(Token):
    """The embedding with its options. `frozen`: as for `token`."""

    def __init__(self, sizes: Sizes, *, frozen: int | None = None) -> None:
        super().__init__(sizes, frozen=frozen)
        self.map = Linear(sizes, sizes.width, sizes.width, "embedding_map")

    def forward(self, index: Tensor) -> Tensor:
        return self.map(super().forward(index))  # (K, B, T, D)
