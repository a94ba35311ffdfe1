"""Disentangled attention (He et al. 2021): scores of content with content, of content with offset, and of offset with content,

    b_ij = (q_i . k_j + q_i . K_{d(i,j)} + k_j . Q_{d(j,i)}) / sqrt(3 d),    d(i, j) = i - j + r, cut to 0 .. 2r - 1,

where K = E W_K and Q = E W_Q come from one learned vector E for each of 2r offsets. `reach`: r; null: the trained length. `shared`: all
layers share E, W_K and W_Q; false: each layer has its own. (The published network shares only E.)
"""

import torch
from torch import Tensor

from rankfall.nets.positions._base import Position, by_places
from rankfall.nets.primitives import Initial, Linear, Sizes, parameter

TOUCHES = ("products",)
ADMITS = "any"
SEES = "offsets"
LIMITS = {"reach": (1, None)}


class Deberta(Position):
    def __init__(self, sizes: Sizes, *, reach: int | None = None, shared: bool = True) -> None:
        super().__init__()
        self.reach, self.shared = reach or sizes.length, shared
        inner, initial = sizes.heads * sizes.head_width, Initial("position", "weight", sizes.width)
        self.table = parameter(sizes, 1, 2 * self.reach, sizes.width, initial=initial)  # E (K, 1, 2r, D)
        self.query = Linear(sizes, sizes.width, inner, "query", bias=False)
        self.key = Linear(sizes, sizes.width, inner, "key", bias=False)

    def offsets(self, map_: Linear, like: Tensor) -> Tensor:
        """Return a map of E for offsets from 1 - T to T - 1, transposed (K, 1, H, d, 2T - 1), for queries like (K, B, H, T, d)."""
        length, heads = like.shape[-2], like.shape[2]
        offset = torch.arange(1 - length, length, device=like.device) + self.reach
        rows = self.table[:, :, offset.clamp(0, 2 * self.reach - 1)]  # (K, 1, 2T - 1, D)
        return map_(rows).unflatten(-1, (heads, -1)).permute(0, 1, 3, 4, 2)

    def products(self, q: Tensor, k: Tensor) -> Tensor:
        content_to_offset = by_places(q @ self.offsets(self.key, q))  # (K, B, H, T, T)
        offset_to_content = by_places(k @ self.offsets(self.query, k)).transpose(-1, -2)
        return (q @ k.transpose(-1, -2) + content_to_offset + offset_to_content) * 3**-0.5
