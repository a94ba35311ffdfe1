"""F(X) alone: no skip connection."""

from torch import Tensor


def none(x: Tensor, branch: Tensor, depth: int) -> Tensor:
    return branch
