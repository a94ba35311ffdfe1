"""The norm as written in the rank-collapse paper: (X - 1 m^T) D^{-1} with D on the right.

It scales columns: each feature over the tokens of one sequence. A layer norm scales rows: each token over its features.
"""

from torch import Tensor, nn

from rankfall.nets.primitives import Sizes, constant


class ColumnNorm(nn.Module):
    def __init__(self, sizes: Sizes, *, eps: float = 1e-12) -> None:
        super().__init__()
        self.eps = eps
        self.gain = constant(sizes, 1, 1, sizes.width, value=1.0)
        self.bias = constant(sizes, 1, 1, sizes.width, value=0.0)

    def plain(self, x: Tensor) -> Tensor:
        """Return the norm without gain and bias."""
        centred = x - x.mean(-2, keepdim=True)  # (K, B, T, D), over tokens
        return centred * (centred.square().mean(-2, keepdim=True) + self.eps).rsqrt()

    def forward(self, x: Tensor) -> Tensor:
        return self.plain(x) * self.gain + self.bias
