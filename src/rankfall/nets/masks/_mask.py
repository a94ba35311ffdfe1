"""A mask in a network: its rule, evaluated at any length and cached."""

from collections.abc import Callable

import torch
from torch import Tensor


class Mask:
    def __init__(self, rule: Callable[[int], Tensor | None]) -> None:
        self.rule = rule
        self.made: dict[tuple[int, torch.device], Tensor | None] = {}

    def __call__(self, length: int, device: torch.device) -> Tensor | None:
        """Return (T, T), True where token i may attend to token j, or None if every token may attend to every token."""
        if (length, device) not in self.made:
            allowed = self.rule(length)
            self.made[length, device] = None if allowed is None else allowed.to(device)
        return self.made[length, device]
