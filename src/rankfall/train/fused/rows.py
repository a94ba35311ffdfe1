"""Which weights a step changes: all but the rows of symbols that no batch has had yet.

Of 30,000 symbols a text may use a fifth. The gradient of the others' rows is zero, and so are the averages that an optimiser keeps of it,
so that their weights stay what they are, to the bit; to find that out at each step costs reading and writing all of them. What is left is
given as spans of a member's row of weights, first number and the one after the last, in order.
"""

import numpy as np
import torch
from torch import Tensor

from rankfall.train.fused.compiled import compiled


def used_rows(slots: tuple[Tensor, ...], first: int, width: int, symbols: int, moved: Tensor) -> np.ndarray:
    """(K, symbols), 1 where an optimiser's slots (K, P) are not all zero: those rows move on when their symbols are gone. All are 1 where
    the optimiser moves weights without a gradient (`moved`, (K,)), as decay through the gradient does."""
    used = moved.unsqueeze(1).expand(-1, symbols).clone()
    for slot in slots:
        used |= (slot[:, first : first + symbols * width].unflatten(1, (symbols, width)) != 0).any(2)
    return used.to(torch.uint8).numpy()


@compiled
def mark(used, index):  # type: ignore[no-untyped-def]
    """The symbols of a batch (B, T) are used from now on. Where there is no table, nothing is."""
    if used.shape[0]:
        for b in range(index.shape[0]):
            for t in range(index.shape[1]):
                used[index[b, t]] = 1


@compiled
def spans_of(used, first, width, count, spans):  # type: ignore[no-untyped-def]
    """Fills in spans (N, 2) of the `count` weights, in whose middle the table begins at `first`, and says how many there are."""
    n, start = 0, 0  # a span is open from `start` on; -1: none is
    for symbol in range(used.shape[0]):
        here = first + symbol * width
        if used[symbol]:
            start = here if start < 0 else start
        elif start >= 0:
            n, start = closed(spans, n, start, here), -1
    if used.shape[0] and start < 0:
        start = first + used.shape[0] * width
    return closed(spans, n, start, count)


@compiled
def closed(spans, n, start, stop):  # type: ignore[no-untyped-def]
    """One span more, if there is anything in it."""
    if stop > start:
        spans[n, 0], spans[n, 1] = start, stop
        n += 1
    return n


@compiled
def clear(g, spans):  # type: ignore[no-untyped-def]
    for n in range(spans.shape[0]):
        g[spans[n, 0] : spans[n, 1]] = 0
