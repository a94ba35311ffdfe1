"""Mixers without a normaliser: a state runs along the sequence, and its effect on the values is written as weights (T, T).

    o_i = sum_{j <= i} a_ij v_j

A subclass of `Recurrent` computes a_ij from queries and keys (`pairs`). This needs no more than the usual T x T products, whatever the
recurrence. No row is normalised, so rows have any sum.

Near identical rows, with a state that grows or fades along the sequence, row sums differ between positions at order one: outputs differ
however similar the rows were, order 0. They differ by a factor only, as in any attention with one head and without biases.
"""

import torch
from torch import Tensor

from rankfall.errors import RankfallError
from rankfall.nets.attentions.linear import causal
from rankfall.nets.attentions.multihead import Multihead
from rankfall.nets.masks._mask import Mask
from rankfall.nets.positions._base import Position
from rankfall.nets.primitives import Sizes


class Recurrent(Multihead):
    """A causal mixer whose weights come from its method `pairs`."""

    def __init__(self, sizes: Sizes, position: Position, normaliser: object, mask: Mask, site: str) -> None:
        super().__init__(sizes, position, leave_scores, mask, site)
        if not causal(mask):
            raise RankfallError("a recurrence runs from the first token to the last: its mask is causal")

    def weights(self, x: Tensor) -> Tensor:
        q, k = self.position.rotate(self.split(self.query(x)), self.split(self.key(x)))
        return self.pairs(x, q, k)

    def pairs(self, x: Tensor, q: Tensor, k: Tensor) -> Tensor:
        """Return a_ij (K, B, H, T, T), zero for j > i, from states (K, B, T, D), queries and keys (K, B, H, T, d)."""
        raise NotImplementedError


def leave_scores(logits: Tensor) -> Tensor:
    """Return the scores unchanged, in place of a normaliser."""
    return logits


def decays(logs: Tensor) -> Tensor:
    """Return prod_{l = j+1 .. i} a_l (..., T, T), zero for j > i, from log a_l (..., T). It is at most one if all a_l are."""
    total = logs.cumsum(-1)
    length = logs.shape[-1]
    before = torch.ones(length, length, dtype=torch.bool, device=logs.device).tril()
    return (total.unsqueeze(-1) - total.unsqueeze(-2)).masked_fill(~before, -torch.inf).exp()
