"""The points where a position may act; a position overrides the methods that it needs, and names them in TOUCHES."""

from torch import Tensor, nn


class Position(nn.Module):
    def embed(self, x: Tensor) -> Tensor:
        """`states`: the vectors (K, B, T, D) after the embedding."""
        return x

    def rotate(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """`queries`: queries and keys (K, B, H, T, d)."""
        return q, k

    def products(self, q: Tensor, k: Tensor) -> Tensor:
        """`products`: what queries and keys make together (K, B, H, T, T), before it is scaled."""
        return q @ k.transpose(-1, -2)

    def bias(self, logits: Tensor) -> Tensor:
        """`scores`: scaled logits (K, B, H, T, T)."""
        return logits

    def context(self, weights: Tensor, values: Tensor) -> Tensor:
        """`values`: what weights (K, B, H, T, T) make of values (K, B, H, T, d)."""
        return weights @ values


HOOKS = {"states": "embed", "queries": "rotate", "products": "products", "scores": "bias", "values": "context"}
