"""A learned function of the distance relative to the position (Li et al. 2024, FIRE):

    b_ij <- b_ij + f_h( g(|i - j|) / g(max(L, i)) ),    g(x) = log(1 + |c| x),

with an MLP f of one hidden layer, from one number to one per head, and learned c and L, all shared by the layers unless `shared` is false.
Positions i count from 0. If i exceeds L, scores depend on the position and not only on the offset. The ratio is at most one for earlier
tokens, in a causal network for all. `threshold`: L at the start; null: a quarter of the trained length, as published. `hidden`: units of f.
"""

import torch
from torch import Tensor

from rankfall.nets.positions._base import Position
from rankfall.nets.primitives import Linear, Sizes, constant

TOUCHES = ("scores",)
ADMITS = "any"
SEES = "places"
LIMITS = {"hidden": (1, None), "threshold": (0, None)}


class Fire(Position):
    def __init__(self, sizes: Sizes, *, hidden: int = 32, threshold: float | None = None, shared: bool = True) -> None:
        super().__init__()
        self.shared, self.threshold = shared, sizes.length / 4 if threshold is None else threshold
        self.inner = Linear(sizes, 1, hidden, "position", deviation=1.0)
        self.outer = Linear(sizes, hidden, sizes.heads, "position", deviation=hidden**-0.5)
        self.bend = constant(sizes, 1, 1, value=0.1)  # c (K, 1, 1)
        self.stretch = constant(sizes, 1, 1, value=1.0)  # L as a multiple of the threshold

    def ratios(self, length: int) -> Tensor:
        """Return g(|i - j|) / g(max(L, i)), (K, T, T)."""
        places = torch.arange(length, device=self.bend.device, dtype=self.bend.dtype)
        distance = (places.unsqueeze(1) - places).abs()  # (T, T)
        limit = torch.maximum((self.stretch * self.threshold).abs(), places.unsqueeze(1))  # (K, T, 1)
        below = (self.bend.abs() * limit).log1p()
        return (self.bend.abs() * distance).log1p() / below.clamp_min(torch.finfo(below.dtype).tiny)

    def bias(self, logits: Tensor) -> Tensor:
        f = self.outer(self.inner(self.ratios(logits.shape[-1]).unsqueeze(-1)).relu())  # (K, T, T, H)
        return logits + f.permute(0, 3, 1, 2).unsqueeze(1)
