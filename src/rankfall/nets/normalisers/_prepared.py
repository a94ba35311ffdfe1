"""Preparation of queries and keys before their products, by normalisers that have a method `prepare`."""

from typing import Any

from torch import Tensor


def prepare(normaliser: Any, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Prepare projected queries and keys (K, B, H, T, d), before a position acts on them."""
    return normaliser.prepare(q, k) if hasattr(normaliser, "prepare") else (q, k)
