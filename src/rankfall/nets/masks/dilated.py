"""A token sees every `rate`-th of its neighbours, `window` of them on each side or, if `causal`, only before it, and itself."""

import torch
from torch import Tensor

LIMITS = {"window": (0, None), "rate": (1, None)}


def dilated(length: int, *, window: int = 1, rate: int = 2, causal: bool = False) -> Tensor | None:
    places = torch.arange(length)
    distance = places.unsqueeze(1) - places  # (T, T): how far j lies before i
    near = (distance <= window * rate) & (distance >= (0 if causal else -window * rate))
    return near & (distance % rate == 0)
