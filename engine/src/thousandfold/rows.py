"""The interfaces of members in training and of their optimiser: all that a step of the engine reads and changes."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

RUNNING, DIVERGED = 0, 2  # status of a member; any other number is a member that its trainer has stopped


class Optimizer(Protocol):
    """An optimiser of rows. `slots` is the number of its state tensors (K, P)."""

    @property
    def slots(self) -> int: ...

    def step(
        self,
        weights: Tensor,
        grads: Tensor,
        slots: tuple[Tensor, ...],
        lr: Tensor,
        decay: Tensor | None,
        t: int,
        scratch: Tensor,
    ) -> None:
        """Change `weights` (K, P) in place. `lr` and `decay` are (K, 1). t counts from 1. `grads` and `scratch` may be overwritten."""
        ...


class Rows(Protocol):
    """K members in training, each with all its parameters in one row of `weights` (K, P)."""

    weights: Tensor
    grads: Tensor  # (K, P)
    slots: tuple[Tensor, ...]  # state of the optimiser, each (K, P)
    lr_now: Tensor  # (K, 1)
    decay: Tensor | None  # (K, 1)
    clip: Tensor | None  # (K, 1), largest norm of a gradient
    status: Tensor  # (K,)
    last_step: Tensor  # (K,), steps that counted for each member
    step_count: int
    device: torch.device

    @property
    def optimizer(self) -> Optimizer: ...

    @property
    def parameters(self) -> Sequence[Tensor]:
        """Return the parameters (K, ...), which are views into `weights`."""
        ...

    def __len__(self) -> int: ...

    def update(self, loss: Tensor) -> None:
        """Take one step of the optimiser along `grads`, which are the gradients of these losses (K,), by PyTorch."""
        ...
