"""a X + F(X) with a = (2 L)^(1/4), L layers (Wang et al. 2022), for a thousand layers with post-norm and the init of the same name.

`alpha`: a; null: as above.
"""

from torch import Tensor


def deepnorm(x: Tensor, branch: Tensor, depth: int, *, alpha: float | None = None) -> Tensor:
    return ((2 * depth) ** 0.25 if alpha is None else alpha) * x + branch
