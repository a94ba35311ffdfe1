"""Path effectiveness: the accuracy of paths of each length through a trained network (Dong et al. 2021, figure 4).

A path of length k picks k of the L layers and one head in each; the other layers pass the state on unchanged. In a layer that
the path goes through,

    X <- N( P_h (X W_V,h + 1 b_V,h) W_O,h + 1 b_O ),        N: the layer's norm without gain and bias; no residual

and, where the network has an MLP, its token-wise part follows unchanged, X <- N(mlp_residual(X, MLP(X))); it mixes no tokens, so it does
not count as a step of the path. In a pre-norm block N stands before: P_h, the value map and the MLP are applied to N(X), and no norm
follows. The final states of n paths are added, passed through N once more, and read out by the network's own head.

`recomputed`: P_h is computed from the path's own state, as the published code does. `frozen`: P_h is that of the network's full forward
pass, as in the theorem (2.1). Neither is an exact decomposition of a network with norms; `decomposition` has one for those without.

Paths are drawn with replacement, anew for each seed, length and repeat, so that a deviation over seeds includes that of the draw. Cells of
one seed have the same paths, so they can be compared in pairs. The first n paths of a draw are the set of n paths.
Paths with a common prefix share its computation: the tree of all prefixes is computed layer by layer, for all lengths at once. At depth 6
with 2 heads the whole tree of 729 paths costs less than the 700 paths of one seed computed one by one.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from rankfall.measures._member import data_of, each_network

if TYPE_CHECKING:
    from rankfall.measures._context import Context
    from rankfall.nets.network import Network
    from rankfall.train.data import Data

TABLE = "paths"
NEEDS = "cells"
COST = {"seconds": 1}
TARGETS = "classes"
USES = ("weights", "heads")
LIMITS = {"counts": (1, None), "repeats": (1, None)}
SKIP = -1  # instead of a head: the path skips this layer


@torch.no_grad()
def paths(
    context: "Context",
    *,
    counts: list[int] = [5, 20],
    repeats: int = 5,
    evaluation: list[Literal["recomputed", "frozen"]] = ["recomputed", "frozen"],
) -> list[dict[str, Any]]:
    """Accuracy on the test set by path length, number of paths and repeat; the whole network and chance have their own rows."""
    network, data = context.network, context.data
    depth, heads = len(network.blocks), network.blocks[0].attention.heads
    whole = accuracy(data, 256, lambda x: network(x).argmax(-1).unsqueeze(1))  # (K, 1)
    lengths, drawn_at_once = range(depth + 1), repeats * max(counts)
    labels = [
        {"length": length, "paths": count, "repeat": repeat}
        for length in lengths
        for count in counts
        for repeat in range(repeats)
    ]
    rows = []
    # One member at a time: the paths of all of them together are nearly all that there are, twice those of one.
    for k, alone in enumerate(each_network(network)):
        rows += [row(k, "whole", float(whole[k, 0])), row(k, "chance", float(data.chance[k]))]
        drawn = np.stack(
            [
                draw(context.stream("paths", length, depth, heads, member=k), length, depth, heads, drawn_at_once)
                for length in lengths
            ]
        )
        distinct, which = np.unique(drawn.reshape(-1, depth), axis=0, return_inverse=True)  # (U, L)
        which = which.reshape(depth + 1, repeats, max(counts))
        sums = [np.bincount(which[s["length"], s["repeat"], : s["paths"]], minlength=len(distinct)) for s in labels]
        own = data_of(data, k)
        sets = torch.from_numpy(np.array([sums])).to(
            own.test.inputs.device, next(alone.parameters()).dtype
        )  # (1, S, U)
        # The final states of all paths should fit the processor's cache: 16 MB was twice as fast as 256 MB.
        ends = len(distinct) * own.test.inputs.shape[2] * network.blocks[0].attention.query.weight.shape[1]
        for how in evaluation:
            ended = partial(path_ends, alone, distinct=distinct, frozen=how == "frozen")
            predict = partial(predicted, alone, ended, sets)
            right = accuracy(own, max(1, (1 << 22) // ends), predict)  # (1, S)
            rows += [row(k, "path", float(right[0, s]), evaluation=how, **labels[s]) for s in range(len(labels))]
    return rows


def predicted(network: "Network", ended: Callable[[Tensor], Tensor], sets: Tensor, inputs: Tensor) -> Tensor:
    return read(network, ended(inputs), sets)


def row(member: int, kind: str, value: float, **labels: Any) -> dict[str, Any]:
    return {"member": member, "kind": kind, "accuracy": value, **labels}


def draw(rng: np.random.Generator, length: int, depth: int, heads: int, count: int) -> np.ndarray:
    """`count` paths of a length: for each layer a head, or SKIP. (count, L)"""
    chosen = rng.random((count, depth)).argsort(1).argsort(1) < length  # `length` layers, each choice equally likely
    return np.where(chosen, rng.integers(heads, size=(count, depth)), SKIP)


def path_ends(network: "Network", inputs: Tensor, distinct: np.ndarray, frozen: bool) -> Tensor:
    """The final state of each of U paths (U, L): (K, U, B, T, D), for inputs (K, B, T)."""
    full = network.states(inputs) if frozen else [network.lift(inputs)]  # (K, B, T, D) a layer
    x = full[0].unsqueeze(
        1
    )  # (K, N, B, T, D): one state for each of N distinct prefixes; at first there is one, the empty one
    parent_of = np.zeros(len(distinct), dtype=int)
    for layer, block in enumerate(network.blocks):
        children, parent_of = np.unique(
            np.column_stack([parent_of, distinct[:, layer]]), axis=0, return_inverse=True
        )  # rows (parent, head)
        parent_of = parent_of.reshape(-1)
        active = np.unique(children[children[:, 1] != SKIP, 0])
        following = x[:, children[:, 0]]  # right for the paths that skip this layer
        if len(active):
            contexts = head_contexts(block, x[:, active], full[layer] if frozen else None)  # (K, A, B, H, T, d)
            for head in range(block.attention.heads):
                rows = np.flatnonzero(children[:, 1] == head)
                if not len(rows):  # few paths were drawn, and none of them takes this head here
                    continue
                context = contexts[:, np.searchsorted(active, children[rows, 0]), :, head]  # (K, R, B, T, d)
                y = block.attention.emit(context.flatten(1, 2), head)
                y = y if block.placement == "pre" else plain(block.norm1)(y)
                following[:, rows] = token_wise(block, y).view(*context.shape[:-1], -1)
        x = following
    return x[:, parent_of]


def head_contexts(block: Any, x: Tensor, full: Tensor | None) -> Tensor:
    """P_h (X W_V,h + 1 b_V,h) of every head, for states (K, A, B, T, D); P_h from x, or from `full` (K, B, T, D) where given."""
    count, samples = x.shape[1:3]
    flat = x.flatten(1, 2)
    before = (
        plain(block.norm1)(flat) if block.placement == "pre" else flat
    )  # a pre-norm block looks at the normalised state
    if full is None:
        weights = block.attention.weights(before)  # (K, A*B, H, T, T)
    else:
        seen = block.norm1(full) if block.placement == "pre" else full
        weights = block.attention.weights(seen).repeat(1, count, 1, 1, 1)
    return block.attention.contexts(weights, before).unflatten(1, (count, samples))


def read(network: "Network", ends: Tensor, sets: Tensor) -> Tensor:
    """Predicted classes (K, S, B, T) of S sets of paths (K, S, U): their ends (K, U, B, T, D) are added, normalised and read out."""
    total = torch.einsum("ksu,kubtd->ksbtd", sets, ends)
    x = plain(network.blocks[-1].norm1)(total.flatten(1, 2))
    if network.sentinels is not None:
        x = network.sentinels.strip(x)
    return network.head(x).argmax(-1).unflatten(1, (sets.shape[1], -1))


def token_wise(block: Any, x: Tensor) -> Tensor:
    """The part of a block after its attention, which looks at each token alone."""
    if block.mlp is None:
        return x
    if block.placement == "pre":
        return block.mlp_residual(x, block.mlp(plain(block.norm2)(x)))
    return plain(block.norm2)(block.mlp_residual(x, block.mlp(x)))


def plain(norm: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A norm without its gain and bias."""
    return getattr(norm, "plain", norm)


def accuracy(data: "Data", batch: int, predict: Callable[[Tensor], Tensor]) -> Tensor:
    """Share of the asked test tokens that are right (K, S), for predictions (K, S, B, T) of S predictors."""
    right, total = torch.tensor(0), torch.tensor(0)
    for start in range(0, data.test.inputs.shape[1], batch):
        wanted = data.test.targets[:, None, start : start + batch]  # (K, 1, B, T)
        right = right + (predict(data.test.inputs[:, start : start + batch]) == wanted).flatten(2).sum(2)
        total = total + (wanted != -1).flatten(2).sum(2)
    return right / total
