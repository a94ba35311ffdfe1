"""One learned token before the sequence, removed before the head (Su 2022, boundary tokens)."""

import torch
from torch import Tensor, nn

from rankfall.nets.primitives import Initial, Sizes, parameter

COUNT = 1


class Bos(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.token = parameter(sizes, 1, 1, sizes.width, initial=Initial("embedding", "weight", sizes.width))

    def add(self, x: Tensor) -> Tensor:
        return torch.cat([self.token.expand(-1, x.shape[1], -1, -1), x], 2)  # (K, B, 1 + T, D)

    def strip(self, x: Tensor) -> Tensor:
        return x[:, :, 1:]
