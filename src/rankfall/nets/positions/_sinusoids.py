"""Sinusoids of positions, or of offsets between positions (Vaswani et al. 2017): sine and cosine at speeds base^(-2p/D), in turn."""

import torch
from torch import Tensor


def sinusoids(places: Tensor, width: int, base: float) -> Tensor:
    """Return the sinusoids (N, D) of positions (N,)."""
    pairs = (width + 1) // 2  # the last pair of an odd width is cut
    speeds = base ** (-2 * torch.arange(pairs, device=places.device, dtype=places.dtype) / width)
    angles = places.unsqueeze(1) * speeds  # (N, pairs)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :width]
