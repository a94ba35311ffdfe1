"""a_ij = max(b_ij, 0) / n: ReLU attention (Wortsman et al. 2023). `tokens`: n; null: the number of tokens."""

from torch import Tensor

ROWS = "free"
SHIFT = "counts"


def relu(logits: Tensor, *, tokens: int | None = None) -> Tensor:
    return logits.relu() / (tokens or logits.shape[-1])
