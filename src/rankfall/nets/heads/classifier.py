"""A linear map from each token's state to class scores."""

from torch import Tensor, nn

from rankfall.nets.primitives import Linear, Sizes

ACCEPTS = ["classes", "hidden"]


class Classifier(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.map = Linear(sizes, sizes.width, sizes.size_out, "head")

    def forward(self, x: Tensor) -> Tensor:
        return self.map(x)  # (K, B, T, classes)
