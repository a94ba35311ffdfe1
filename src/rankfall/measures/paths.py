"""Path effectiveness: how much of a task is solved by paths of each length through a trained network (Dong et al. 2021, figure 4).

A path of length k picks k of the L layers and one head in each; the other layers pass the state on unchanged. In a layer that
the path goes through,

    X <- N( P_h X W_h + 1 b^T ),        N: the layer's norm without gain and bias, no residual; b: the whole output bias

and, where the network has an MLP, its token-wise part follows as it is, X <- N(mlp_residual(X, MLP(X))): it mixes no tokens, so it
lengthens no path. The states that n paths end in are added, passed through N once more, and read out by the network's own head.

`recomputed`: P_h is computed from the path's own state, as the published code does. `frozen`: P_h is that of the network's full forward
pass, as in the theorem (2.1). Neither is an exact decomposition of a network with norms; `decomposition` has one for those without.

Paths are drawn with replacement, anew for each repeat; the first n of a draw serve as the set of n. Where a length has fewer distinct
paths than draws, each is evaluated once and looked up. All paths of a length are one batch.
"""

from collections.abc import Callable
from itertools import combinations, product
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rankfall.streams import stream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankfall.nets.network import Network
    from rankfall.plan.cell import Cell
    from rankfall.train.loop import Data

TABLE = "paths"
NEEDS = "cells"
TARGETS = "classes"
SKIP = -1  # in place of a head: the path does not go through this layer


@torch.no_grad()
def paths(
    network: "Network",
    data: "Data",
    cells: "Sequence[Cell]",
    *,
    counts: list[int] = [5, 20],  # noqa: B006
    repeats: int = 5,
    evaluation: list[str] = ["recomputed", "frozen"],  # noqa: B006
    batch: int = 100,
) -> list[dict[str, Any]]:
    """Accuracy on the test set by path length, number of paths and repeat; the whole network and chance as rows of their own."""
    depth, heads = len(network.blocks), network.blocks[0].attention.heads
    whole = accuracy(data, batch, lambda x: network(x).argmax(-1).unsqueeze(1)).squeeze(1)  # (K,)
    rows = [row(k, "whole", None, None, None, None, whole[k]) for k in range(len(cells))]
    rows += [row(k, "chance", None, None, None, None, data.chance[k]) for k in range(len(cells))]
    for length in range(depth + 1):
        chosen, draws = draw(cells, length, depth, heads, repeats, max(counts))
        for how in evaluation:

            def predict(x: Tensor, how: str = how, chosen: Tensor = chosen, draws: Tensor = draws) -> Tensor:
                ends = path_states(network, x, chosen, frozen=how == "frozen")  # (K, U, B, T, D)
                members = torch.arange(len(cells))[:, None, None]
                sets = [ends[members, draws[:, :, :n]].sum(2) for n in counts]  # each (K, R, B, T, D)
                return torch.stack([read_sum(network, s) for s in sets], 1).flatten(1, 2)  # (K, n * R, B, T)

            right = accuracy(data, batch, predict).view(len(cells), len(counts), repeats)
            for k in range(len(cells)):
                for i, n in enumerate(counts):
                    rows += [row(k, "path", how, length, n, r, right[k, i, r]) for r in range(repeats)]
    return rows


def row(
    member: int, kind: str, how: str | None, length: int | None, count: int | None, repeat: int | None, value: Tensor
) -> dict[str, Any]:
    return {
        "member": member,
        "kind": kind,
        "evaluation": how,
        "length": length,
        "paths": count,
        "repeat": repeat,
        "accuracy": float(value),
    }


def draw(
    cells: "Sequence[Cell]", length: int, depth: int, heads: int, repeats: int, count: int
) -> tuple[Tensor, Tensor]:
    """The paths to evaluate (K, U, L), a head or SKIP a layer, and which of them each draw is (K, repeats, count)."""
    distinct = comb(depth, length) * heads**length
    if distinct <= repeats * count:
        chosen = torch.tensor(enumerate_paths(length, depth, heads)).expand(len(cells), -1, -1)  # (K, U, L)
        draws = [stream(c.seed, "paths", length).integers(distinct, size=(repeats, count)) for c in cells]
        return chosen, torch.from_numpy(np.stack(draws))
    drawn = []
    for cell in cells:
        rng = stream(cell.seed, "paths", length)
        path = rng.integers(heads, size=(repeats * count, depth))
        rank = rng.random((repeats * count, depth)).argsort(1).argsort(1)  # a uniform choice of `length` layers
        drawn.append(np.where(rank < length, path, SKIP))
    return torch.from_numpy(np.stack(drawn)), torch.arange(repeats * count).view(1, repeats, count).expand(
        len(cells), -1, -1
    )


def enumerate_paths(length: int, depth: int, heads: int) -> list[list[int]]:
    """Every path of a length: C(L, k) H^k of them."""
    found = []
    for layers in combinations(range(depth), length):
        for choice in product(range(heads), repeat=length):
            path = [SKIP] * depth
            for layer, head in zip(layers, choice):
                path[layer] = head
            found.append(path)
    return found


def path_states(network: "Network", inputs: Tensor, chosen: Tensor, frozen: bool) -> Tensor:
    """Where each path ends (K, U, B, T, D), for inputs (K, B, T) and paths (K, U, L)."""
    full = network.states(inputs) if frozen else [network.embed(inputs)]  # (K, B, T, D) a layer
    samples, count = full[0].shape[1], chosen.shape[1]
    x = full[0].repeat(1, count, 1, 1)  # (K, U*B, T, D), the batch of each path in turn
    for layer, block in enumerate(network.blocks):
        head = chosen[:, :, layer].repeat_interleave(samples, 1)  # (K, U*B)
        gate = torch.nn.functional.one_hot(head.clamp(min=0), block.attention.heads).to(x.dtype)  # (K, U*B, H)
        # A pre-norm block looks at the normalised state.
        before = plain(block.norm1)(x) if block.placement == "pre" else x
        if frozen:
            seen = block.norm1(full[layer]) if block.placement == "pre" else full[layer]
            weights = block.attention.weights(seen).repeat(1, count, 1, 1, 1)  # (K, U*B, H, T, T)
        else:
            weights = block.attention.weights(before)
        y = block.attention.mix(weights, before, gate)
        y = y if block.placement == "pre" else plain(block.norm1)(y)
        y = token_wise(block, y)
        x = torch.where((head == SKIP)[..., None, None], x, y)
    return x.view(x.shape[0], count, samples, *x.shape[2:])


def token_wise(block: Any, x: Tensor) -> Tensor:
    """The part of a block after its attention, which looks at each token alone."""
    if block.mlp is None:
        return x
    if block.placement == "pre":
        return block.mlp_residual(x, block.mlp(plain(block.norm2)(x)))
    return plain(block.norm2)(block.mlp_residual(x, block.mlp(x)))


def read_sum(network: "Network", total: Tensor) -> Tensor:
    """Predicted classes (K, R, B, T) from summed states (K, R, B, T, D)."""
    x = plain(network.blocks[-1].norm1)(total.flatten(1, 2))
    if network.sentinels is not None:
        x = network.sentinels.strip(x)
    return network.head(x).argmax(-1).view(*total.shape[:3], -1)


def plain(norm: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A norm without its gain and bias."""
    return getattr(norm, "plain", norm)


def accuracy(data: "Data", batch: int, predict: Callable[[Tensor], Tensor]) -> Tensor:
    """Share of the asked test tokens that are right (K, S), for predictions (K, S, B, T) of S predictors."""
    right, total = torch.tensor(0), torch.tensor(0)
    for start in range(0, data.test_inputs.shape[1], batch):
        wanted = data.test_targets[:, None, start : start + batch]  # (K, 1, B, T)
        right = right + (predict(data.test_inputs[:, start : start + batch]) == wanted).flatten(2).sum(2)
        total = total + (wanted != -1).flatten(2).sum(2)
    return right / total
