"""MLP(x) = (silu(x W_g) * x W_u) W_d, silu(x) = x / (1 + e^-x), without biases (Shazeer 2020).

It has three maps, and the other MLPs have two: with 2/3 of their `mlp_width` it has as many parameters.
"""

from torch import Tensor, nn

from rankfall.nets.primitives import Linear, Sizes


class Swiglu(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.gate = Linear(sizes, sizes.width, sizes.mlp_width, "mlp", bias=False)
        self.up = Linear(sizes, sizes.width, sizes.mlp_width, "mlp", bias=False)
        self.down = Linear(sizes, sizes.mlp_width, sizes.width, "mlp", bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate = self.gate(x)
        return self.down(gate * gate.sigmoid() * self.up(x))
