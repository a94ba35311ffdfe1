"""Final states of many paths through a network at once, by the tree of all their prefixes, layer by layer.

Paths with a common prefix share its computation. The states of a layer are computed a few at a time, so that they stay in the
processor's cache from the first product to the last: for 250 features, all at once took twice as long.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from torch import Tensor

from rankfall.nets.network import Network

SKIP = -1  # in place of a head, if the path skips this layer
CACHED = 1 << 18  # numbers in the states that are computed together on a CPU


def path_ends(
    network: Network,
    start: Tensor,
    distinct: np.ndarray,
    full: list[Tensor] | None = None,
) -> Tensor:
    """Return the final state of each of U paths (U, L): (K, U, B, T, D), from the input of the first block (K, B, T, D).

    `full`: the states (K, B, T, D) at each layer that give the attention weights of all paths; by default each path's own states.
    """
    x = start.unsqueeze(1)  # (K, N, B, T, D): one state for each of N distinct prefixes, at first only the empty one
    parent_of = np.zeros(len(distinct), dtype=int)
    for layer, block in enumerate(network.blocks):
        children, parent_of = np.unique(
            np.column_stack([parent_of, distinct[:, layer]]), axis=0, return_inverse=True
        )  # rows (parent, head)
        parent_of = parent_of.reshape(-1)
        frozen = None if full is None else block.attention.weights(attention_input(block, full[layer]))
        x = follow_layer(block, x, children, frozen)
    return x if np.array_equal(parent_of, np.arange(x.shape[1])) else x[:, parent_of]


def follow_layer(block: Any, x: Tensor, children: np.ndarray, frozen: Tensor | None) -> Tensor:
    """Return the states (K, C, B, T, D) after a layer from those before it (K, N, B, T, D). `children` (C, 2) are rows (parent, head)."""
    parents, heads = children.T
    found = x.new_empty(x.shape[0], len(children), *x.shape[2:])
    skipping = np.flatnonzero(heads == SKIP)
    found[:, skipping] = x[:, parents[skipping]]
    for part in parts(np.unique(parents[heads != SKIP]), x):
        contexts = head_contexts(block, x[:, part], frozen)  # (K, A, B, H, T, d)
        of_part = np.isin(parents, part)
        for head in range(block.attention.heads):
            rows = np.flatnonzero(of_part & (heads == head))
            if not len(rows):  # none of the paths takes this head here
                continue
            context = contexts[:, np.searchsorted(part, parents[rows]), :, head]  # (K, R, B, T, d)
            y = block.attention.emit(context.flatten(1, 2), head)
            y = y if block.placement == "pre" else plain(block.norm1)(y)
            found[:, rows] = token_wise(block, y).view(*context.shape[:-1], -1)
    return found


def parts(active: np.ndarray, x: Tensor) -> Iterator[np.ndarray]:
    """Yield the states to compute, a few at a time on a CPU and all at once on a GPU."""
    few = max(1, CACHED // x[:, 0].numel()) if x.device.type == "cpu" else max(1, len(active))
    for start in range(0, len(active), few):
        yield active[start : start + few]


def head_contexts(block: Any, x: Tensor, frozen: Tensor | None) -> Tensor:
    """Return P_h (X W_V,h + 1 b_V,h) of every head, for states (K, A, B, T, D); P_h is from x, or `frozen` (K, B, H, T, T)."""
    count, samples = x.shape[1:3]
    flat = x.flatten(1, 2)
    # The attention of a pre-norm block reads the normalised state.
    before = plain(block.norm1)(flat) if block.placement == "pre" else flat
    weights = (
        block.attention.weights(before) if frozen is None else frozen.repeat(1, count, 1, 1, 1)
    )  # (K, A*B, H, T, T)
    contexts: Tensor = block.attention.contexts(weights, before).unflatten(1, (count, samples))
    return contexts


def attention_input(block: Any, x: Tensor) -> Tensor:
    """Return the input of the attention for the whole network's state before a layer."""
    return block.norm1(x) if block.placement == "pre" else x


def token_wise(block: Any, x: Tensor) -> Tensor:
    """Apply the part of a block after its attention, which acts on each token alone."""
    if block.mlp is None:
        return x
    if block.placement == "pre":
        return block.mlp_residual(x, block.mlp(plain(block.norm2)(x)))
    return plain(block.norm2)(block.mlp_residual(x, block.mlp(x)))


def plain(norm: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return a norm without its gain and bias."""
    return getattr(norm, "plain", norm)
