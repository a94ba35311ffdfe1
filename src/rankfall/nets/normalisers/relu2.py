"""a_ij = max(b_ij, 0)^2 / n: the gated attention unit's weights (Hua et al. 2022). `tokens`: n; null: the number of tokens."""

from torch import Tensor

ROWS = "free"
SHIFT = "counts"


def relu2(logits: Tensor, *, tokens: int | None = None) -> Tensor:
    return logits.relu().square() / (tokens or logits.shape[-1])
