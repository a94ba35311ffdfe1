"""A norm whose output is smaller in deeper layers: N(X) l^(-p) in layer l (Sun et al. 2025, layer-norm scaling, p = 1/2).

`of`: N, `rms` or `layer`; `power`: p. Norms before the first and after the last layer are not scaled.
"""

from typing import Literal

from torch import Tensor, nn

from rankfall.nets.norms.layer import Layer
from rankfall.nets.norms.rms import Rms
from rankfall.nets.primitives import Sizes


class ByDepth(nn.Module):
    def __init__(
        self, sizes: Sizes, *, of: Literal["rms", "layer"] = "rms", power: float = 0.5, eps: float = 1e-12
    ) -> None:
        super().__init__()
        self.norm = Rms(sizes, eps=eps) if of == "rms" else Layer(sizes, eps=eps)
        self.factor = max(sizes.layer, 1) ** -power

    def plain(self, x: Tensor) -> Tensor:
        """Return the norm without gain and bias."""
        return self.norm.plain(x) * self.factor

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x) * self.factor
