"""Two linear maps with a gelu between them, from coordinates to states (the published convex hull network)."""

from torch import Tensor, nn
from torch.nn.functional import gelu

from rankfall.nets.primitives import Linear, Sizes

ACCEPTS = "vectors"


class Coordinates(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.inner = Linear(sizes, sizes.size_in, sizes.width, "embedding_map")
        self.outer = Linear(sizes, sizes.width, sizes.width, "embedding_map")

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(gelu(self.inner(x)))
