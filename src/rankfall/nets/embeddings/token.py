"""A learned vector for each symbol."""

from torch import Tensor, nn

from rankfall.nets.primitives import Sizes, Table

ACCEPTS = "tokens"


class Token(nn.Module):
    """`padding`: a symbol whose vector is zero and never trains, as the published sorting and memorization code has it."""

    def __init__(self, sizes: Sizes, *, padding: int | None = None) -> None:
        super().__init__()
        self.padding = padding
        self.table = Table(sizes, sizes.size_in, "embedding")

    def forward(self, index: Tensor) -> Tensor:
        x = self.table(index)  # (K, B, T, D)
        return x if self.padding is None else x * (index != self.padding).unsqueeze(-1)
