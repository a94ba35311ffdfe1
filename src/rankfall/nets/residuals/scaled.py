"""lambda X + F(X): a weaker or stronger skip connection (Joseph et al. 2024)."""

from torch import Tensor


def scaled(x: Tensor, branch: Tensor, depth: int, *, scale: float = 0.5) -> Tensor:
    return scale * x + branch
