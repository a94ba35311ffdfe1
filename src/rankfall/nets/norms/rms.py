"""Root-mean-square norm of each token's features: x / sqrt(mean(x^2) + eps) * gain, without subtraction of the mean."""

from torch import Tensor, nn

from rankfall.nets.primitives import Sizes, constant


class Rms(nn.Module):
    def __init__(self, sizes: Sizes, *, eps: float = 1e-12) -> None:
        super().__init__()
        self.eps = eps
        self.gain = constant(sizes, 1, 1, sizes.width, value=1.0)

    def plain(self, x: Tensor) -> Tensor:
        """Return the norm without gain."""
        return x * (x.square().mean(-1, keepdim=True) + self.eps).rsqrt()

    def forward(self, x: Tensor) -> Tensor:
        return self.plain(x) * self.gain
