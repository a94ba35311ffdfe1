"""A softmax over keys of length one: a_ij = softmax_j( q_i . k_j / |k_j| ), without the division by sqrt(d) (Su 2023, KNA)."""

from torch import Tensor, nn
from torch.nn.functional import normalize

from rankfall.nets.primitives import Sizes

ROWS = "one"
SHIFT = "cancels"
TOUCHES = ("lengths",)


class KeyNormalised(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()

    def prepare(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Normalise keys, and compensate for the attention's division by sqrt(d)."""
        return q.shape[-1] ** 0.5 * q, normalize(k, dim=-1)

    def forward(self, logits: Tensor) -> Tensor:
        return logits.softmax(-1)
