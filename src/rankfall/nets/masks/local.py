"""A token sees its neighbours up to `window` positions away, on both sides or, if `causal`, only before it."""

import torch
from torch import Tensor

LIMITS = {"window": (0, None)}


def local(length: int, *, window: int = 1, causal: bool = False) -> Tensor | None:
    places = torch.arange(length)
    distance = places.unsqueeze(1) - places  # (T, T): how far j lies before i
    return (distance <= window) & (distance >= (0 if causal else -window))
