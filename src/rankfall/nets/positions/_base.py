"""What a position may touch; a position overrides the hooks that it needs and leaves the others as they are."""

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
