"""A softmax of cosines: a_ij = softmax_j( s log n_i cos(q_i, k_j) ), n_i the number of tokens that i sees (Su 2023).

`scale`: s. `log_n`: false leaves out log n_i. A position's term in the scores is multiplied by log n_i too.
"""

from torch import Tensor, nn
from torch.nn.functional import normalize

from rankfall.nets.normalisers.log_n import by_log_n
from rankfall.nets.primitives import Sizes

ROWS = "one"
SHIFT = "cancels"
TOUCHES = ("lengths",)


class Cosine(nn.Module):
    def __init__(self, sizes: Sizes, *, scale: float = 4.0, log_n: bool = True) -> None:
        super().__init__()
        self.scale, self.log_n = scale, log_n

    def prepare(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Normalise queries and keys, and compensate for the attention's division by sqrt(d)."""
        return self.scale * q.shape[-1] ** 0.5 * normalize(q, dim=-1), normalize(k, dim=-1)

    def forward(self, logits: Tensor) -> Tensor:
        return (by_log_n(logits, 1.0) if self.log_n else logits).softmax(-1)
