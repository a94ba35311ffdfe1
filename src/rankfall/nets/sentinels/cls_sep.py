"""Two learned tokens, one before and one after the sequence, removed before the head (Su 2022, [CLS] and [SEP])."""

import torch
from torch import Tensor, nn

from rankfall.nets.primitives import Initial, Sizes, parameter

COUNT = 2


class ClsSep(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        initial = Initial("embedding", "weight", sizes.width)
        self.first = parameter(sizes, 1, 1, sizes.width, initial=initial)  # (K, 1, 1, D)
        self.last = parameter(sizes, 1, 1, sizes.width, initial=initial)

    def add(self, x: Tensor) -> Tensor:
        first, last = (token.expand(-1, x.shape[1], -1, -1) for token in (self.first, self.last))
        return torch.cat([first, x, last], 2)  # (K, B, 1 + T + 1, D)

    def strip(self, x: Tensor) -> Tensor:
        return x[:, :, 1:-1]
