"""Adam with decoupled weight decay (Loshchilov & Hutter 2019): weights shrink by lr * decay, apart from the gradient."""

from torch import Tensor

from rankfall.train.optimizers.adam import Adam


class Adamw(Adam):
    def __init__(self, *, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8) -> None:
        super().__init__(beta1=beta1, beta2=beta2, eps=eps)

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
        if decay is not None:
            weights.mul_(1 - lr * decay)
        super().step(weights, grads, slots, lr, None, t, scratch)
