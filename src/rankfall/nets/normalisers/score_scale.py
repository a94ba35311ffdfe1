"""A softmax of scores times a temperature: a_ij = softmax_j( s g(n_i) b_ij ), n_i the number of tokens that i sees.

`scale`: g, which is `one`, `log_n` or `sqrt_log_n`. Chen et al. (2025) find the critical scale for tokens of one correlation at log n,
Giorlandino and Goldt (2025) for independent scores at sqrt(log n). `factor`: s. `learned`: s is learned by head, starting at `factor`; with
`log_n` this is the scalable softmax (Nakanishi 2025). `shared`: one s for all layers; false: one for each layer.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from rankfall.nets.primitives import Sizes, constant

ROWS = "one"
SHIFT = "cancels"
Scale = Literal["one", "log_n", "sqrt_log_n"]


class ScoreScale(nn.Module):
    def __init__(
        self,
        sizes: Sizes,
        *,
        scale: Literal["one", "log_n", "sqrt_log_n"] = "sqrt_log_n",
        factor: float = 1.0,
        learned: bool = False,
        shared: bool = False,
    ) -> None:
        super().__init__()
        self.scale, self.shared = scale, shared
        self.factor: Tensor | float = constant(sizes, 1, sizes.heads, 1, 1, value=factor) if learned else factor

    def forward(self, logits: Tensor) -> Tensor:
        hidden = logits == -torch.inf
        times: Tensor | float = self.factor
        if self.scale != "one":
            visible = (~hidden).sum(-1, keepdim=True).to(logits.dtype)  # n_i (K, B, H, T, 1)
            times = times * (visible.log() if self.scale == "log_n" else visible.log().sqrt())
        # -inf must not be multiplied: with one visible token, log n_i is zero.
        return (logits.masked_fill(hidden, 0.0) * times).masked_fill(hidden, -torch.inf).softmax(-1)
