"""Adam with decoupled weight decay (Loshchilov & Hutter 2019): weights shrink by lr * decay, apart from the gradient."""

import thousandfold.optimizers


class Adamw(thousandfold.optimizers.AdamW):
    def __init__(self, *, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8) -> None:
        super().__init__(betas=(beta1, beta2), eps=eps)
