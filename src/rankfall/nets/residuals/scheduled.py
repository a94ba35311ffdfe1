"""X + c l^(-p) L^(-q) F(X) in layer l of L: the branch is scaled down by the layer's number or by the number of layers.

`factor`: c, `by_layer`: p, `by_depth`: q. Known cases: q = 1/2 (Noci et al. 2022), q = 1 (Dey et al. 2025, CompleteP), and p = 1/2, which
layer-norm scaling applies to the norm (Sun et al. 2025).
"""

from torch import Tensor


def scheduled(
    x: Tensor,
    branch: Tensor,
    depth: int,
    layer: int,
    *,
    factor: float = 1.0,
    by_layer: float = 0.5,
    by_depth: float = 0.0,
) -> Tensor:
    return x + branch * (factor * layer**-by_layer * depth**-by_depth)
