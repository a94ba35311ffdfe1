"""X + F(X) / sqrt(L): each of L layers adds a share, so that the sum keeps its scale (Noci et al. 2022)."""

from torch import Tensor


def depth_scaled(x: Tensor, branch: Tensor, depth: int) -> Tensor:
    return x + branch * depth**-0.5
