"""Terms of content and of offset in the scores, with two learned queries for all positions (Dai et al. 2019):

    b_ij = ((q_i + u) . k_j + (q_i + v) . W_R r_{i-j}) / sqrt(d),    r: sinusoids of the offset.

`shared`: all layers share u, v and W_R; false: each layer has its own.
"""

import torch
from torch import Tensor

from rankfall.nets.positions._base import Position, by_places, sinusoids
from rankfall.nets.primitives import Initial, Linear, Sizes, parameter

TOUCHES = ("products",)
ADMITS = "any"
SEES = "offsets"


class TransformerXl(Position):
    def __init__(self, sizes: Sizes, *, base: float = 10000.0, shared: bool = True) -> None:
        super().__init__()
        self.base, self.shared, self.width = base, shared, sizes.width
        initial = Initial("position", "weight", sizes.head_width)
        self.u = parameter(sizes, 1, sizes.heads, 1, sizes.head_width, initial=initial)  # (K, 1, H, 1, d)
        self.v = parameter(sizes, 1, sizes.heads, 1, sizes.head_width, initial=initial)
        self.map = Linear(sizes, sizes.width, sizes.heads * sizes.head_width, "key", bias=False)

    def offsets(self, q: Tensor) -> Tensor:
        """Return W_R r_o of every head for offsets o from 1 - T to T - 1, (K, 1, H, 2T - 1, d)."""
        length, heads = q.shape[-2], q.shape[2]
        places = torch.arange(1 - length, length, device=q.device, dtype=q.dtype)
        r = sinusoids(places, self.width, self.base).expand(len(q), 1, -1, -1)  # (K, 1, 2T - 1, D)
        return self.map(r).unflatten(-1, (heads, -1)).transpose(2, 3)

    def products(self, q: Tensor, k: Tensor) -> Tensor:
        return (q + self.u) @ k.transpose(-1, -2) + by_places((q + self.v) @ self.offsets(q).transpose(-1, -2))
