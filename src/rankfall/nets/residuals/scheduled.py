"""X + c l^(-p) L^(-q) F(X) in layer l of L: what a layer adds, made smaller by its own number or by that of all layers.

`factor`: c, `by_layer`: p, `by_depth`: q. Known cases: q = 1/2 (Noci et al. 2022), q = 1 (Dey et al. 2025, CompleteP), and p = 1/2, which
layer-norm scaling has on the norm (Sun et al. 2025).
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
