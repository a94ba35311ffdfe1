"""X + b (v - k . X) k for each token, k = F(X) / |F(X)| (Zhang et al. 2026, deep delta learning): a layer rewrites one direction.

The part of X along k is moved a share b of the way to v. The rest stays: b = 0 is the identity, b = 1 replaces the part, b = 2 reflects
it. Gate and value are linear in the state of mean square one, b = 2 sigmoid(N(X) w_b + b_0) and v = N(X) w_v + v_0.

`start`: b before training, between 0 and 2, up to the drawn part of the gate. This is the published form for states that are vectors, in
which the sublayer gives the direction; wider states and convolutions are left out.
"""

import math

from torch import Tensor, nn

from rankfall.nets.primitives import Linear, Sizes


class DeltaSkip(nn.Module):
    def __init__(self, sizes: Sizes, *, start: float = 1.0, eps: float = 1e-12) -> None:
        super().__init__()
        self.gate = Linear(sizes, sizes.width, 1, "gate")
        self.value = Linear(sizes, sizes.width, 1, "delta")
        self.offset, self.eps = math.log(start / (2 - start)), eps

    def forward(self, x: Tensor, branch: Tensor) -> Tensor:
        state = x * (x.square().mean(-1, keepdim=True) + self.eps).rsqrt()
        k = branch * (branch.square().sum(-1, keepdim=True) + self.eps).rsqrt()
        share = 2 * (self.gate(state) + self.offset).sigmoid()  # (K, B, T, 1)
        return x + share * (self.value(state) - (k * x).sum(-1, keepdim=True)) * k
