"""a_ij = e^{b_ij} / (e^{s_h} + sum_j e^{b_ij}): a softmax with one more key, whose score s_h is learned by head and whose value is zero, so
that a head may attend to nothing. With s = 0 it is `softmax_off_by_one`.

`start`: s before training. `shared`: one s for all layers; false: one for each layer.
"""

import torch
from torch import Tensor, nn

from rankfall.nets.primitives import Sizes, constant

ROWS = "free"
SHIFT = "counts"


class Sink(nn.Module):
    def __init__(self, sizes: Sizes, *, start: float = 0.0, shared: bool = False) -> None:
        super().__init__()
        self.shared = shared
        self.score = constant(sizes, 1, sizes.heads, 1, 1, value=start)  # (K, 1, H, 1, 1)

    def forward(self, logits: Tensor) -> Tensor:
        top = torch.maximum(logits.amax(-1, keepdim=True), self.score)  # it cancels in the quotient
        weights = (logits - top).exp()
        return weights / ((self.score - top).exp() + weights.sum(-1, keepdim=True))
