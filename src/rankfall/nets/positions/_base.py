"""The points where a position may act; a position overrides the methods that it needs."""

from torch import Tensor, nn


class Position(nn.Module):
    def embed(self, x: Tensor) -> Tensor:
        """States (K, B, T, D) after the embedding."""
        return x

    def rotate(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys (K, B, H, T, d)."""
        return q, k

    def bias(self, logits: Tensor) -> Tensor:
        """Scaled logits (K, B, H, T, T)."""
        return logits
