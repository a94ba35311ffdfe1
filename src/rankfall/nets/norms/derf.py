"""A function of each entry in place of a norm: erf(a x + s) * gain + bias (Chen et al. 2025, Derf), with learned numbers a and s.

`start`: a before training, .5 as published; s starts at zero. Nothing is measured on the token, so a token's length is not normalised:
small states are multiplied by 2 a / sqrt(pi), and large ones are cut off at one.
"""

from torch import Tensor, nn

from rankfall.nets.primitives import Sizes, constant


class Derf(nn.Module):
    def __init__(self, sizes: Sizes, *, start: float = 0.5) -> None:
        super().__init__()
        self.slope = constant(sizes, 1, 1, 1, value=start)  # a (K, 1, 1, 1)
        self.shift = constant(sizes, 1, 1, 1, value=0.0)
        self.gain = constant(sizes, 1, 1, sizes.width, value=1.0)
        self.bias = constant(sizes, 1, 1, sizes.width, value=0.0)

    def forward(self, x: Tensor) -> Tensor:
        return (self.slope * x + self.shift).erf() * self.gain + self.bias
