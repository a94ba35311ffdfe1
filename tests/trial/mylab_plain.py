"""An attention as somebody writes it who has read one page: a class of 40 lines, and nothing declared."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.nets.primitives import Dropout, Linear, Sizes, no_dropout


class Plain(nn.Module):
    """Scaled products of queries and keys, normalised and masked, times values, for all members at once."""

    def __init__(
        self,
        sizes: Sizes,
        position: Any,
        normaliser: Callable[[Tensor], Tensor],
        mask: Any,
        site: str,
    ) -> None:
        super().__init__()
        inner = sizes.heads * sizes.head_width
        self.heads, self.width = sizes.heads, sizes.head_width
        self.normaliser, self.mask, self.site = normaliser, mask, site
        self.query = Linear(sizes, sizes.width, inner, "query")
        self.key = Linear(sizes, sizes.width, inner, "key")
        self.value = Linear(sizes, sizes.width, inner, "value")
        self.output = Linear(sizes, inner, sizes.width, "output")

    def split(self, x: Tensor) -> Tensor:
        members, samples, tokens, _ = x.shape  # (K, B, T, H * D)
        return x.view(members, samples, tokens, self.heads, self.width).transpose(2, 3)  # (K, B, H, T, D)

    def forward(self, x: Tensor, drop: Dropout = no_dropout) -> Tensor:
        queries, keys, values = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = queries @ keys.mT * self.width**-0.5  # (K, B, H, T, T)
        allowed = self.mask(x.shape[2], x.device)  # (T, T), or None where all see all
        if allowed is not None:
            scores = scores.masked_fill(~allowed, -torch.inf)
        weights = self.normaliser(scores)
        mixed = drop(weights, f"{self.site}.weights") @ values  # (K, B, H, T, D)
        return self.output(torch.flatten(mixed.transpose(2, 3), 3))
