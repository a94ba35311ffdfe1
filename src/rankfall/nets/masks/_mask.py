"""A mask as a network holds it: its rule at whatever length is asked for."""

from collections.abc import Callable

import torch
from torch import Tensor


class Mask:
    def __init__(self, rule: Callable[[int], Tensor | None]) -> None:
        self.rule = rule
        self.made: dict[tuple[int, torch.device], Tensor | None] = {}

    def __call__(self, length: int, device: torch.device) -> Tensor | None:
        """(T, T), True where row i may see column j; None where all see all."""
        if (length, device) not in self.made:
            allowed = self.rule(length)
            self.made[length, device] = None if allowed is None else allowed.to(device)
        return self.made[length, device]
