"""The points where a position may act. A position overrides the methods that it needs and lists them in TOUCHES.

The functions convert numbers or vectors for each offset o = i - j to matrices over pairs of positions and back.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional


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


def by_offset(values: Tensor, length: int) -> Tensor:
    """Expand (..., 2r + 1), entry r + o for offset o = i - j, to (..., T, T). Farther offsets use the farthest known one."""
    reach = (values.shape[-1] - 1) // 2
    places = torch.arange(length, device=values.device)
    offset = (places.unsqueeze(1) - places).clamp(-reach, reach) + reach  # (T, T)
    return values[..., offset]


def rows_of(table: Tensor, length: int) -> Tensor:
    """Expand (..., 2r + 1, d), row r + o for offset o, to a row for each offset, (..., 2T - 1, d). Farther ones use the farthest known."""
    reach = (table.shape[-2] - 1) // 2
    offset = torch.arange(1 - length, length, device=table.device)
    return table[..., offset.clamp(-reach, reach) + reach, :]


def by_places(values: Tensor) -> Tensor:
    """Convert (..., T, 2T - 1), with offset o at column T - 1 + o, to (..., T, T): entry (i, j) is that of row i at offset i - j.

    Each row is shifted by one more than the row above. A change of shape does this without an index, so the gradient needs no scatter.
    """
    length = values.shape[-2]
    flat = functional.pad(values.flatten(-2), (0, length))  # (..., T * 2T)
    return flat.unflatten(-1, (length, 2 * length))[..., :length].flip(-1)


def by_offsets(weights: Tensor) -> Tensor:
    """Convert (..., T, T) to (..., T, 2T - 1), the reverse of `by_places`, with zeros at offsets outside the sequence."""
    length = weights.shape[-1]
    flat = functional.pad(weights.flip(-1), (0, length)).flatten(-2)  # (..., T * 2T)
    return flat[..., : length * (2 * length - 1)].unflatten(-1, (length, 2 * length - 1))


def sinusoids(places: Tensor, width: int, base: float) -> Tensor:
    """Return sine and cosine in turn, (N, D), at speeds base^(-2p/D) of positions or offsets (N,) (Vaswani et al. 2017)."""
    pairs = (width + 1) // 2  # the last pair of an odd width is cut
    speeds = base ** (-2 * torch.arange(pairs, device=places.device, dtype=places.dtype) / width)
    angles = places.unsqueeze(1) * speeds  # (N, pairs)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :width]
