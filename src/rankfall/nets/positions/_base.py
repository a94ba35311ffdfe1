"""The points where a position may act. A position overrides the methods that it needs and lists them in TOUCHES."""

from torch import Tensor, nn


class Position(nn.Module):
    """A position that does not act anywhere."""

    def embed(self, x: Tensor) -> Tensor:
        """Act on `states`: the vectors (K, B, T, D) after the embedding."""
        return x

    def rotate(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Act on `queries`: queries and keys (K, B, H, T, d)."""
        return q, k

    def products(self, q: Tensor, k: Tensor) -> Tensor:
        """Act on `products`: the products of queries and keys (K, B, H, T, T), before they are scaled."""
        return q @ k.transpose(-1, -2)

    def bias(self, logits: Tensor) -> Tensor:
        """Act on `scores`: scaled logits (K, B, H, T, T)."""
        return logits

    def context(self, weights: Tensor, values: Tensor) -> Tensor:
        """Act on `values`: the context from weights (K, B, H, T, T) and values (K, B, H, T, d)."""
        return weights @ values


HOOKS = {"states": "embed", "queries": "rotate", "products": "products", "scores": "bias", "values": "context"}
