"""Attention by heads whose parts can be called separately: logits, weights, each head's context and its part of the output.

A subclass may compute other weights, or transform a head's context further. `multihead.py` is the usual attention, whose values go through
linear maps alone.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from rankfall.nets.masks._mask import Mask, hide
from rankfall.nets.primitives import Dropout, Linear, Sizes, no_dropout

if TYPE_CHECKING:
    from rankfall.nets.positions._base import Position


class Heads(nn.Module):
    """Attention by heads with linear maps of queries, keys, values and outputs."""

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
        """Split the heads: (K, B, T, H*d) -> (K, B, H, T, d)."""
        return x.view(*x.shape[:-1], self.heads, self.head_width).transpose(2, 3)

    def logits(self, x: Tensor) -> Tensor:
        """Return the scores before the normaliser (K, B, H, T, T): scaled, with position terms, -inf where masked."""
        q, k = prepare(self.normaliser, self.split(self.query(x)), self.split(self.key(x)))
        return self.scores(q, k)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """Return the scores of queries and keys (K, B, H, T, d), which the normaliser has prepared."""
        products = self.position.products(*self.position.rotate(q, k)) * self.head_width**-0.5
        return hide(self.position.bias(products), self.mask)

    def weights(self, x: Tensor) -> Tensor:
        """Return P_h (K, B, H, T, T). Row i has the weights of all tokens j for token i."""
        return self.normaliser(self.logits(x))

    def contexts(self, weights: Tensor, x: Tensor) -> Tensor:
        """Return the context of each head, P_h (X W_V,h + 1 b_V,h), (K, B, H, T, d), with the position's term."""
        return self.position.context(weights, self.split(self.value(x)))

    def mix(self, weights: Tensor, x: Tensor) -> Tensor:
        """Return sum_h P_h (X W_V,h + 1 b_V,h) W_O,h + 1 b_O."""
        return self.output(self.contexts(weights, x).transpose(2, 3).flatten(-2))

    def emit(self, context: Tensor, head: int) -> Tensor:
        """Return the output of one head with the whole output bias, context_h W_O,h + 1 b_O, from (K, B, T, d)."""
        rows = slice(head * self.head_width, (head + 1) * self.head_width)
        y = context.flatten(1, 2) @ self.output.weight[:, rows]  # (K, B*T, D)
        return (y if self.output.bias is None else y + self.output.bias).view(*context.shape[:-1], -1)

    def forward(self, x: Tensor, drop: Dropout = no_dropout) -> Tensor:
        return self.mix(drop(self.weights(x), f"{self.site}.weights"), x)


def prepare(normaliser: Any, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Prepare projected queries and keys (K, B, H, T, d), before a position acts on them, if the normaliser has a method for it."""
    return normaliser.prepare(q, k) if hasattr(normaliser, "prepare") else (q, k)
