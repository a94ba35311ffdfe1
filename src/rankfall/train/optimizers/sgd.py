"""Stochastic gradient descent, optionally with momentum."""

from torch import Tensor


class Sgd:
    slots = 1  # velocity

    def __init__(self, *, momentum: float = 0.0) -> None:
        self.momentum = momentum

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
        (velocity,) = slots
        if decay is not None:
            grads.addcmul_(weights, decay)
        velocity.mul_(self.momentum).add_(grads)
        weights.addcmul_(velocity, lr, value=-1)
