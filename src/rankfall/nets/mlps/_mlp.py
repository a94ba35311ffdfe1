"""Two linear maps with a nonlinearity between them, on each token alone."""

from collections.abc import Callable

from torch import Tensor, nn

from rankfall.nets.primitives import Linear, Sizes


class Mlp(nn.Module):
    def __init__(self, sizes: Sizes, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.inner = Linear(sizes, sizes.width, sizes.mlp_width, "mlp")
        self.outer = Linear(sizes, sizes.mlp_width, sizes.width, "mlp")
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.activation(self.inner(x)))
