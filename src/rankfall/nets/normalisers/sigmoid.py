"""a_ij = 1 / (1 + e^{-(b_ij + s)}): each weight depends only on its own score.

`shift`: s; null: -log n, so that a row of equal small scores sums to about one.
"""

import math

from torch import Tensor

ROWS = "free"
SHIFT = "counts"


def sigmoid(logits: Tensor, *, shift: float | None = None) -> Tensor:
    return (logits + (-math.log(logits.shape[-1]) if shift is None else shift)).sigmoid()
