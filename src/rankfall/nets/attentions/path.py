"""PaTH attention (Yang et al. 2025): the tokens between a key and a query change the key, one after the other.

    b_ij = q_i . H_i H_(i-1) ... H_(j+1) k_j / sqrt(d),   H_t = 1 - r_t w_t w_t^T,   r_t = 2 sigmoid(X_t w_r + r_0)

per head, with w_t = X_t W_w of length one. H_t is the identity for r = 0, a projection for r = 1 and a reflection for r = 2. The published
w_t also passes through a short convolution and a map of low rank, which are left out.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize, pad

from rankfall.errors import RankfallError
from rankfall.nets.attentions._heads import prepare
from rankfall.nets.attentions.linear import causal
from rankfall.nets.attentions.multihead import Multihead
from rankfall.nets.masks._mask import hide
from rankfall.nets.primitives import Linear, Sizes

PROVIDES = ("weights", "heads", "values")
OFFERS = ("queries", "scores", "values", "lengths")
ROWS = "normaliser"
MIXES = "scores"
REQUIRES = [({"mask": "causal"}, "a key is changed by the tokens after it, up to the query")]


class Path(Multihead):
    def __init__(self, sizes: Sizes, *parts: Any) -> None:
        super().__init__(sizes, *parts)
        if not causal(self.mask):
            raise RankfallError("a key is changed by the tokens after it, up to the query: the mask is causal")
        self.direction = Linear(sizes, sizes.width, sizes.heads * sizes.head_width, "direction", bias=False)
        self.rate = Linear(sizes, sizes.width, sizes.heads, "rate")

    def logits(self, x: Tensor) -> Tensor:
        q, k = prepare(self.normaliser, self.split(self.query(x)), self.split(self.key(x)))
        q, k = self.position.rotate(q, k)  # (K, B, H, T, d)
        w = normalize(self.split(self.direction(x)), dim=-1)
        rate = 2 * self.rate(x).sigmoid().transpose(2, 3).unsqueeze(-1)  # (K, B, H, T, 1)
        length, changed, rows = x.shape[2], k[..., :0, :], []
        for i in range(length):
            direction = w[..., i : i + 1, :]
            changed = changed - rate[..., i : i + 1, :] * (changed @ direction.transpose(-1, -2)) * direction
            changed = torch.cat([changed, k[..., i : i + 1, :]], -2)  # (K, B, H, i + 1, d)
            rows.append(pad(q[..., i : i + 1, :] @ changed.transpose(-1, -2), (0, length - 1 - i)))
        return hide(self.position.bias(torch.cat(rows, -2) * self.head_width**-0.5), self.mask)
