"""The delta rule (Schlag et al. 2021; Yang et al. 2024): before a value is written under a key, what lies there is taken away by a share.

    S_i = S_(i-1) (1 - b_i k_i k_i^T) + b_i v_i k_i^T,   o_i = S_i q_i,   b_i = sigmoid(X_i w_b + b_0)

per head, with queries and keys of length one. What is written in the end, u_i = b_i (v_i - sum_(j < i) (k_i . k_j) u_j), is a triangular
system, solved row by row: a = tril(Q K^T) U with (1 + strictly lower part of b K K^T) U = Diag(b).
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from rankfall.nets.attentions._recurrent import Recurrent
from rankfall.nets.masks._mask import Mask
from rankfall.nets.positions._base import Position
from rankfall.nets.primitives import Linear, Sizes

PROVIDES = ("weights", "heads", "values")
IGNORES = ("normaliser",)
OFFERS = ("queries", "values")
ROWS = "free"
REQUIRES = [({"mask": "causal"}, "a recurrence runs from the first token to the last")]


class Delta(Recurrent):
    def __init__(self, sizes: Sizes, position: Position, normaliser: object, mask: Mask, site: str) -> None:
        super().__init__(sizes, position, mask, site)
        self.rate = Linear(sizes, sizes.width, sizes.heads, "rate")

    def pairs(self, x: Tensor, q: Tensor, k: Tensor) -> Tensor:
        q, k = normalize(q, dim=-1), normalize(k, dim=-1)
        rate = self.rate(x).sigmoid().transpose(2, 3)  # (K, B, H, T)
        return (q @ k.transpose(-1, -2)).tril() @ written(rate, k)


def written(rate: Tensor, k: Tensor) -> Tensor:
    """U (..., T, T): row i says what of each value is written at i, from rates (..., T) and keys (..., T, d)."""
    length = k.shape[-2]
    found = (k @ k.transpose(-1, -2)) * rate.unsqueeze(-1)  # b_i k_i . k_j
    own = rate.unsqueeze(-1) * torch.eye(length, dtype=k.dtype, device=k.device)
    rows = [own[..., :1, :]]
    for i in range(1, length):
        before = torch.cat(rows, -2)  # (..., i, T)
        rows.append(own[..., i : i + 1, :] - found[..., i : i + 1, :i] @ before)
    return torch.cat(rows, -2)
