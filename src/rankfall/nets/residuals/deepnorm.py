"""a X + F(X) with a = (2 L)^(1/4), L layers (Wang et al. 2022): with norms after, and the init of the same name, for a thousand layers.

`alpha`: a; null means as above.
"""

from torch import Tensor


def deepnorm(x: Tensor, branch: Tensor, depth: int, *, alpha: float | None = None) -> Tensor:
    return ((2 * depth) ** 0.25 if alpha is None else alpha) * x + branch
