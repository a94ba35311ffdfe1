"""A linear map from coordinates to states."""

from torch import Tensor, nn

from rankfall.nets.primitives import Linear, Sizes

ACCEPTS = "vectors"


class LinearEmbedding(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.map = Linear(sizes, sizes.size_in, sizes.width, "embedding_map")

    def forward(self, x: Tensor) -> Tensor:
        return self.map(x)  # (K, B, T, C) -> (K, B, T, D)
