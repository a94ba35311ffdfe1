"""Multi-head attention whose parts can be called separately: logits, weights, each head's value and output maps.

    SA(X) = sum_h P_h X W_h + 1 b^T,   P_h = normaliser(logits_h),   W_h = W_V,h W_O,h,   b = sum_h b_V,h W_O,h + b_O

The bias b_V,h stays outside P_h only where rows of P_h sum to one; `mix` therefore carries it through P_h, as a
network does, and `maps` returns W_h and the two biases separately. What a position adds to a head's context (`positions/shaw.py`) is in
`contexts` and `mix`, and in none of the W_h; such a position says BREAKS.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from rankfall.nets.dropout import Dropout, no_dropout
from rankfall.nets.masks._mask import Mask
from rankfall.nets.normalisers._prepared import prepared
from rankfall.nets.primitives import Linear, Sizes

if TYPE_CHECKING:
    from rankfall.nets.positions._base import Position


PROVIDES = ("weights", "heads", "values")
OFFERS = ("queries", "products", "scores", "values", "lengths")
ROWS = "normaliser"


class Multihead(nn.Module):
    def __init__(
        self,
        sizes: Sizes,
        position: "Position",
        normaliser: Callable[[Tensor], Tensor],
        mask: Mask,
        site: str,
    ) -> None:
        super().__init__()
        inner = sizes.heads * sizes.head_width
        self.heads, self.head_width, self.site = sizes.heads, sizes.head_width, site
        self.query = Linear(sizes, sizes.width, inner, "query")
        self.key = Linear(sizes, sizes.width, inner, "key")
        self.value = Linear(sizes, sizes.width, inner, "value")
        self.output = Linear(sizes, inner, sizes.width, "output")
        self.position = position  # shared by all layers: registered first by the network, which names its parameters
        self.normaliser, self.mask = normaliser, mask

    def split(self, x: Tensor) -> Tensor:
        """(K, B, T, H*d) -> (K, B, H, T, d)"""
        return x.view(*x.shape[:-1], self.heads, self.head_width).transpose(2, 3)

    def logits(self, x: Tensor) -> Tensor:
        """Scores before the normaliser (K, B, H, T, T): scaled, with position terms, -inf where masked."""
        q, k = prepared(self.normaliser, self.split(self.query(x)), self.split(self.key(x)))
        q, k = self.position.rotate(q, k)
        scores = self.position.bias(self.position.products(q, k) * self.head_width**-0.5)
        allowed = self.mask(x.shape[2], x.device)
        return scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)

    def weights(self, x: Tensor) -> Tensor:
        """P_h (K, B, H, T, T); row i has the weights of all tokens j for token i."""
        return self.normaliser(self.logits(x))

    def contexts(self, weights: Tensor, x: Tensor) -> Tensor:
        """The context of each head, P_h (X W_V,h + 1 b_V,h), as (K, B, H, T, d), and what a position adds to it."""
        return self.position.context(weights, self.split(self.value(x)))

    def mix(self, weights: Tensor, x: Tensor) -> Tensor:
        """sum_h P_h (X W_V,h + 1 b_V,h) W_O,h + 1 b_O"""
        return self.output(self.contexts(weights, x).transpose(2, 3).flatten(-2))

    def emit(self, context: Tensor, head: int) -> Tensor:
        """One head alone, with the whole output bias: context_h W_O,h + 1 b_O, from (K, B, T, d)."""
        rows = slice(head * self.head_width, (head + 1) * self.head_width)
        y = context.flatten(1, 2) @ self.output.weight[:, rows]  # (K, B*T, D)
        return (y if self.output.bias is None else y + self.output.bias).view(*context.shape[:-1], -1)

    def forward(self, x: Tensor, drop: Dropout = no_dropout) -> Tensor:
        return self.mix(drop(self.weights(x), f"{self.site}.weights"), x)

    def maps(self) -> tuple[Tensor, Tensor, Tensor]:
        """W_h (K, H, D, D), what head h adds through its value bias b_V,h W_O,h (K, H, D), and the output bias (K, D)."""
        members, width = self.value.weight.shape[:2]
        shape = (members, -1, self.heads, self.head_width)
        value = self.value.weight.view(shape).transpose(1, 2)  # (K, H, D, d)
        output = self.output.weight.view(members, self.heads, self.head_width, width)
        assert self.value.bias is not None and self.output.bias is not None
        value_bias = self.value.bias.view(shape).transpose(1, 2)  # (K, H, 1, d)
        return value @ output, (value_bias @ output).squeeze(2), self.output.bias.squeeze(1)
