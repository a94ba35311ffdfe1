"""A mask in a network: its rule, evaluated at any length and cached."""

from collections.abc import Callable

import torch
from torch import Tensor


class Mask:
    """A rule from a length to (T, T) or None, evaluated once for each length and device."""

    def __init__(self, rule: Callable[[int], Tensor | None]) -> None:
        self.rule = rule
        self.evaluated: dict[tuple[int, torch.device], Tensor | None] = {}

    def __call__(self, length: int, device: torch.device) -> Tensor | None:
        """Return (T, T), True where token i may attend to token j, or None if every token may attend to every token."""
        if (length, device) not in self.evaluated:
            allowed = self.rule(length)
            self.evaluated[length, device] = None if allowed is None else allowed.to(device)
        return self.evaluated[length, device]


def hide(scores: Tensor, mask: Callable[[int, torch.device], Tensor | None]) -> Tensor:
    """Return scores (..., T, T), -inf where a mask does not let token i attend to token j."""
    allowed = mask(scores.shape[-1], scores.device)
    return scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)
