"""What a normaliser makes of queries and keys before their products are taken, if it has a method `prepare`."""

from typing import Any

from torch import Tensor


def prepare(normaliser: Any, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Queries and keys (K, B, H, T, d), as projected, before a position acts on them."""
    return normaliser.prepare(q, k) if hasattr(normaliser, "prepare") else (q, k)
