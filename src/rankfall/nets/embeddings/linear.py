"""A linear map from coordinates to states."""

from torch import Tensor, nn

from rankfall.nets import primitives

ACCEPTS = "vectors"


class Linear(nn.Module):
    def __init__(self, sizes: primitives.Sizes) -> None:
        super().__init__()
        self.map = primitives.Linear(sizes, sizes.size_in, sizes.width, "embedding_map")

    def forward(self, x: Tensor) -> Tensor:
        return self.map(x)  # (K, B, T, C) -> (K, B, T, D)
