"""A learned vector for each symbol."""

import torch
from torch import Tensor, nn

from rankfall.nets.primitives import Lookup, Sizes

ACCEPTS = "tokens"


class Token(nn.Module):
    """The embedding with its options. `frozen`: a symbol whose vector is not trained. The published code declares symbol 0 as padding, with
    this effect.
    """

    def __init__(self, sizes: Sizes, *, frozen: int | None = None) -> None:
        super().__init__()
        self.frozen = frozen
        self.table = Lookup(sizes, sizes.size_in, "embedding")

    def forward(self, index: Tensor) -> Tensor:
        x = self.table(index)  # (K, B, T, D)
        return x if self.frozen is None else torch.where((index == self.frozen).unsqueeze(-1), x.detach(), x)
