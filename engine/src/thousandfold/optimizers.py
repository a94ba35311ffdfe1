"""Members in training, and their optimisers. Learning rate, weight decay and clip norm are numbers, or sequences with one for each member.

Another optimiser is a subclass of `RowOptimizer` with `slots` and `step`. It sees the parameters of a member as one row, and any operation
on rows serves: what the engine cannot trace, PyTorch computes.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

PerMember = float | Sequence[float]
Slots = tuple[Tensor, ...]  # state of an optimiser, each (K, P)
RUNNING, DIVERGED = 0, 2  # status of a member; any other number is a member that its trainer has stopped


class Optimizer(Protocol):
    """What the engine needs of an optimiser of rows. `slots` is the number of its state tensors (K, P)."""

    @property
    def slots(self) -> int: ...

    def step(
        self, weights: Tensor, grads: Tensor, slots: Slots, lr: Tensor, decay: Tensor | None, t: int, scratch: Tensor
    ) -> None:
        """Change `weights` (K, P) in place. `lr` and `decay` are (K, 1). t counts from 1. `grads` and `scratch` may be overwritten."""


class Rows(Protocol):
    """K members in training, each with all its parameters in one row of `weights` (K, P)."""

    weights: Tensor
    grads: Tensor  # (K, P)
    slots: Slots
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


@dataclass(frozen=True, kw_only=True)
class RowOptimizer:
    """The hyperparameters of all optimisers."""

    slots: ClassVar[int] = 0  # state tensors (K, P)

    lr: PerMember = 1e-3
    weight_decay: PerMember = 0.0
    clip: PerMember | None = None  # largest norm of a gradient
    schedule: Callable[[int], float] | None = None  # step, from 0 -> factor of all learning rates

    def step(
        self, weights: Tensor, grads: Tensor, slots: Slots, lr: Tensor, decay: Tensor | None, t: int, scratch: Tensor
    ) -> None:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class SGD(RowOptimizer):
    """Stochastic gradient descent, like `torch.optim.SGD`."""

    slots: ClassVar[int] = 1  # velocity
    momentum: float = 0.0

    def step(
        self, weights: Tensor, grads: Tensor, slots: Slots, lr: Tensor, decay: Tensor | None, t: int, scratch: Tensor
    ) -> None:
        (velocity,) = slots
        if decay is not None:
            grads.addcmul_(weights, decay)
        velocity.mul_(self.momentum).add_(grads)
        weights.addcmul_(velocity, lr, value=-1)


@dataclass(frozen=True, kw_only=True)
class Adam(RowOptimizer):
    """Adam, like `torch.optim.Adam`: weight decay enters through the gradient."""

    slots: ClassVar[int] = 2  # running means of the gradient and of its square
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    def step(
        self, weights: Tensor, grads: Tensor, slots: Slots, lr: Tensor, decay: Tensor | None, t: int, scratch: Tensor
    ) -> None:
        mean, square = slots
        first, second = self.betas
        if decay is not None:
            grads.addcmul_(weights, decay)
        mean.lerp_(grads, 1 - first)
        square.mul_(second).addcmul_(grads, grads, value=1 - second)
        root = torch.sqrt(square, out=scratch).div_(math.sqrt(1 - second**t)).add_(self.eps)
        weights.addcmul_(torch.div(mean, root, out=scratch), lr, value=-1 / (1 - first**t))


@dataclass(frozen=True, kw_only=True)
class AdamW(Adam):
    """Adam with decoupled weight decay, like `torch.optim.AdamW`."""

    def step(
        self, weights: Tensor, grads: Tensor, slots: Slots, lr: Tensor, decay: Tensor | None, t: int, scratch: Tensor
    ) -> None:
        if decay is not None:
            weights.mul_(1 - lr * decay)
        super().step(weights, grads, slots, lr, None, t, scratch)
