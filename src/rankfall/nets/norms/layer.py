"""Layer normalisation of each token's features: (x - mean) / sqrt(var + eps) * gain + bias."""

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm

from rankfall.nets.primitives import Sizes, constant


class Layer(nn.Module):
    def __init__(self, sizes: Sizes, *, eps: float = 1e-12) -> None:
        super().__init__()
        self.eps = eps
        self.gain = constant(sizes, 1, 1, sizes.width, value=1.0)
        self.bias = constant(sizes, 1, 1, sizes.width, value=0.0)

    def plain(self, x: Tensor) -> Tensor:
        """Return the norm without gain and bias."""
        return layer_norm(x, x.shape[-1:], eps=self.eps)

    def forward(self, x: Tensor) -> Tensor:
        return torch.addcmul(self.bias, self.plain(x), self.gain)
