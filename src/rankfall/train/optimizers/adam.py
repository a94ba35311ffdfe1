"""Adam (Kingma & Ba 2015). Weight decay, if any, enters through the gradient, as in torch.optim.Adam.

Every weight moves at every step, including the rows of an embedding whose words a batch lacks: their running means keep moving them. An
update of a row only when it is read again would have to replay the missed steps one by one, since the corrections for t, the schedule and
eps have no closed form. That would save reads and writes of memory, but no arithmetic.
"""

import math

import torch
from torch import Tensor


class Adam:
    slots = 2  # running means of the gradient and of its square

    def __init__(self, *, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8) -> None:
        self.beta1, self.beta2, self.eps = beta1, beta2, eps

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
        """Take one step. Tensors are (K, P), except lr and decay (K, 1). t counts from 1. grads and scratch may be overwritten."""
        mean, square = slots
        if decay is not None:
            grads.addcmul_(weights, decay)
        mean.lerp_(grads, 1 - self.beta1)
        square.mul_(self.beta2).addcmul_(grads, grads, value=1 - self.beta2)
        root = torch.sqrt(square, out=scratch).div_(math.sqrt(1 - self.beta2**t)).add_(self.eps)
        weights.addcmul_(torch.div(mean, root, out=scratch), lr, value=-1 / (1 - self.beta1**t))
