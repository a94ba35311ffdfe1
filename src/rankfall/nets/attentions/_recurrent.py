"""Mixers without a normaliser: a state runs along the sequence, and what it makes of the values is written as weights (T, T).

    o_i = sum_{j <= i} a_ij v_j

A subclass of `Recurrent` says what a_ij are of queries and keys (`pairs`). They need no more than the usual T x T products, whatever the
recurrence is; nothing is divided by the length of a row, so rows sum to anything.

Near identical rows, with a state that grows or fades along the sequence, row sums differ from place to place at order one: outputs differ
however similar the rows were, order 0. They do so by a factor only, as in any attention with one head and without biases.
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
    def __init__(self, sizes: Sizes, position: Position, mask: Mask, site: str) -> None:
        super().__init__(sizes, position, leave_scores, mask, site)
        if not causal(mask):
            raise RankfallError("a recurrence runs from the first token to the last: its mask is causal")

    def weights(self, x: Tensor) -> Tensor:
        q, k = self.position.rotate(self.split(self.query(x)), self.split(self.key(x)))
        return self.pairs(x, q, k)

    def pairs(self, x: Tensor, q: Tensor, k: Tensor) -> Tensor:
        """a_ij (K, B, H, T, T), zero for j > i, from states (K, B, T, D), queries and keys (K, B, H, T, d)."""
        raise NotImplementedError


def leave_scores(logits: Tensor) -> Tensor:
    """In the place of a normaliser: scores as they are."""
    return logits


def decays(logs: Tensor) -> Tensor:
    """prod_{l = j+1 .. i} a_l (..., T, T), zero for j > i, from log a_l (..., T): never more than one where a is not."""
    total = logs.cumsum(-1)
    length = logs.shape[-1]
    before = torch.ones(length, length, dtype=torch.bool, device=logs.device).tril()
    return (total.unsqueeze(-1) - total.unsqueeze(-2)).masked_fill(~before, -torch.inf).exp()
