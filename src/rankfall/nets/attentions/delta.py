"""The delta rule (Schlag et al. 2021; Yang et al. 2024): writing a value under a key first removes a share of the value stored there.

    S_i = S_(i-1) (1 - b_i k_i k_i^T) + b_i v_i k_i^T,   o_i = S_i q_i,   b_i = sigmoid(X_i w_b + b_0)

per head, with queries and keys of length one. The written values, u_i = b_i (v_i - sum_(j < i) (k_i . k_j) u_j), solve a triangular
system, CHUNK rows at a time: a = tril(Q K^T) U with (1 + strictly lower part of b K K^T) U = Diag(b).
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from rankfall.nets.attentions._recurrent import Recurrent
from rankfall.nets.primitives import Linear, Sizes

PROVIDES = ("weights", "heads", "values")
IGNORES = ("normaliser",)
OFFERS = ("queries", "values")
ROWS = "free"
MIXES = "states"
REQUIRES = [({"mask": "causal"}, "a recurrence runs from the first token to the last")]
CHUNK = 8  # a larger one takes fewer steps, but large powers that cancel lose digits


class Delta(Recurrent):
    def __init__(self, sizes: Sizes, *parts: Any) -> None:
        super().__init__(sizes, *parts)
        self.rate = Linear(sizes, sizes.width, sizes.heads, "rate")

    def pairs(self, x: Tensor, q: Tensor, k: Tensor) -> Tensor:
        q, k = normalize(q, dim=-1), normalize(k, dim=-1)
        rate = self.rate(x).sigmoid().transpose(2, 3)  # (K, B, H, T)
        return (q @ k.transpose(-1, -2)).tril() @ solve_writes(rate, k)


def solve_writes(rate: Tensor, k: Tensor) -> Tensor:
    """Return U (..., T, T), whose row i holds the share of each value written at i, from rates (..., T) and keys (..., T, d)."""
    length = k.shape[-2]
    lower = ((k @ k.transpose(-1, -2)) * rate.unsqueeze(-1)).tril(-1)  # b_i k_i . k_j
    diagonal = rate.unsqueeze(-1) * torch.eye(length, dtype=k.dtype, device=k.device)
    rows: list[Tensor] = []
    for start in range(0, length, CHUNK):
        stop = min(start + CHUNK, length)
        target = diagonal[..., start:stop, :]
        if rows:
            target = target - lower[..., start:stop, :start] @ torch.cat(rows, -2)
        rows.append(solve_lower(lower[..., start:stop, start:stop], target))
    return torch.cat(rows, -2)


def solve_lower(lower: Tensor, target: Tensor) -> Tensor:
    """Return (1 + N)^-1 W = ... (1 + N^4) (1 + N^2) (1 - N) W. It ends since powers of N, strictly lower triangular, become zero."""
    solution, power, degree = target - lower @ target, lower, 1
    while 2 * degree < lower.shape[-1]:
        power, degree = power @ power, 2 * degree
        solution = solution + power @ solution
    return solution
