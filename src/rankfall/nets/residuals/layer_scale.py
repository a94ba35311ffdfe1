"""X + g * F(X) with a learned number for each feature, the same for all tokens and initially small (Touvron et al. 2021).

`start`: g before training; published are .1 up to 18 layers, 1e-5 up to 24, 1e-6 beyond.
"""

from torch import Tensor, nn

from rankfall.nets.primitives import Sizes, constant


class LayerScale(nn.Module):
    def __init__(self, sizes: Sizes, *, start: float = 0.1) -> None:
        super().__init__()
        self.gain = constant(sizes, 1, 1, sizes.width, value=start)  # (K, 1, 1, D)

    def forward(self, x: Tensor, branch: Tensor) -> Tensor:
        return x + self.gain * branch
