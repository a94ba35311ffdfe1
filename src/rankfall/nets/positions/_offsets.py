"""From one number for each distance i - j to a Toeplitz matrix."""

import torch
from torch import Tensor


def by_offset(values: Tensor, length: int) -> Tensor:
    """(..., 2n - 1), entry n - 1 + d for distance d = i - j, to (..., T, T); farther distances use the farthest known."""
    reach = (values.shape[-1] - 1) // 2
    places = torch.arange(length, device=values.device)
    offset = (places.unsqueeze(1) - places).clamp(-reach, reach) + reach  # (T, T)
    return values[..., offset]
