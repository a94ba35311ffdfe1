"""X + a F(X) with a learned number a of each sublayer, initially zero (Bachlechner et al. 2020; De and Smith 2020, SkipInit): an untrained
network is the identity, and has full rank at any depth.

`start`: a before training.
"""

from torch import Tensor, nn

from rankfall.nets.primitives import Sizes, constant


class Rezero(nn.Module):
    def __init__(self, sizes: Sizes, *, start: float = 0.0) -> None:
        super().__init__()
        self.share = constant(sizes, 1, 1, 1, value=start)  # (K, 1, 1, 1)

    def forward(self, x: Tensor, branch: Tensor) -> Tensor:
        return x + self.share * branch
