"""Path effectiveness: the accuracy of paths of each length through a trained network (Dong et al. 2021, figure 4).

A path of length k picks k of the L layers and one head in each; the other layers pass the state on unchanged. In a layer that the path
goes through,

    X <- N( P_h (X W_V,h + 1 b_V,h) W_O,h + 1 b_O ),        N: the layer's norm without gain and bias; no residual

and, where the network has an MLP, its token-wise part follows unchanged, X <- N(mlp_residual(X, MLP(X))). It mixes no tokens, so it does
not count as a step of the path. In a pre-norm block N comes first: P_h, the value map and the MLP are applied to N(X), and no norm
follows. The final states of n paths are added, passed through N once more, and read out by the network's own head.

`recomputed`: P_h is computed from the path's own state, as the published code does. `frozen`: P_h is that of the network's full forward
pass, as in theorem 2.1. Neither is an exact decomposition of a network with norms; `decomposition` has one for networks without norms.

Paths are drawn with replacement, anew for each seed, length and repeat, so that a deviation over seeds includes that of the draw. Cells
of one seed have the same paths, so they can be compared in pairs. The first n paths of a draw are the set of n paths. Paths with a
common prefix share its computation (`path_ends`), for all lengths: at depth 6 with 2 heads the 700 paths of a seed pass 2100 layers,
and the tree of their prefixes about 440.

Independent parts of the computation run on as many threads as torch has, each part on one thread (`at_once`).
Products of a few hundred rows gain little from a second thread, but two of them side by side take half the time.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor

from rankfall.measure.context import Context
from rankfall.measure.shared import strip_sentinels
from rankfall.nets.network import Network
from rankfall.train.data import Data

COST = {"seconds": 1}
TARGETS = "classes"
USES = ("weights", "heads", "blocks")
# Numbers in the final states of all paths, which should fit the cache: 16 MB was twice as fast as 256 MB.
STATES = 1 << 22
BESIDE = 8  # largest number of parts of the test set at a time, each of which holds the final states of all paths
SKIP = -1  # in place of a head, if the path skips this layer
CACHED = 1 << 18  # numbers in the states that are computed together on a CPU


@torch.no_grad()
def paths(
    context: Context,
    *,
    counts: list[int] = [5, 20],
    repeats: int = 5,
    evaluation: list[Literal["recomputed", "frozen"]] = ["recomputed", "frozen"],
) -> list[dict[str, Any]]:
    """Measure test accuracy by path length, number of paths and repeat. The whole network and chance have their own rows."""
    network, data = context.network, context.data
    depth, heads = len(network.blocks), network.blocks[0].attention.heads
    whole = accuracy(data, 256, lambda x: network(x).argmax(-1).unsqueeze(1))  # (1, 1)
    lengths, drawn_at_once = range(depth + 1), repeats * max(counts)
    names = ("length", "paths", "repeat")
    labels = [dict(zip(names, values)) for values in product(lengths, counts, range(repeats))]
    rows = [{"kind": "whole", "accuracy": float(whole)}, {"kind": "chance", "accuracy": float(data.chance)}]
    rngs = [context.stream("paths", length, depth, heads, member=0) for length in lengths]
    drawn = [draw(rng, length, depth, heads, drawn_at_once) for length, rng in enumerate(rngs)]
    distinct, path_index = np.unique(np.concatenate(drawn), axis=0, return_inverse=True)  # (U, L)
    path_index = path_index.reshape(depth + 1, repeats, max(counts))
    sums = [np.bincount(path_index[s["length"], s["repeat"], : s["paths"]], minlength=len(distinct)) for s in labels]
    inputs = data.test.inputs
    sets = torch.from_numpy(np.array([sums])).to(inputs.device, next(network.parameters()).dtype)  # (1, S, U)
    batch = max(1, STATES // (len(distinct) * inputs.shape[2] * network.blocks[0].attention.query.weight.shape[1]))
    for mode in evaluation:
        predict = partial(predict_classes, network, distinct, sets, mode == "frozen")
        accuracies = accuracy(data, batch, predict)  # (1, S)
        about = {"kind": "path", "evaluation": mode}
        rows += [about | label | {"accuracy": float(accuracies[0, s])} for s, label in enumerate(labels)]
    return rows


def predict_classes(network: Network, distinct: np.ndarray, sets: Tensor, frozen: bool, inputs: Tensor) -> Tensor:
    """Return the classes (K, S, B, T) that S sets (K, S, U) of the paths (U, L) predict."""
    full = network.states(inputs) if frozen else None  # (K, B, T, D) a layer
    start = network.lift(inputs) if full is None else full[0]
    return read_out(network, path_ends(network, start, distinct, full), sets)


def draw(rng: np.random.Generator, length: int, depth: int, heads: int, count: int) -> np.ndarray:
    """Draw `count` paths of a length: for each layer a head, or SKIP. (count, L)"""
    chosen = rng.random((count, depth)).argsort(1).argsort(1) < length  # `length` layers, all choices equally likely
    return np.where(chosen, rng.integers(heads, size=(count, depth)), SKIP)


def read_out(network: Network, ends: Tensor, sets: Tensor) -> Tensor:
    """Return predicted classes (K, S, B, T) of S sets of paths (K, S, U): their ends (K, U, B, T, D) are added, normalised and read out."""
    total = torch.einsum("ksu,kubtd->ksbtd", sets, ends)
    x = strip_sentinels(network, without_gain(network.blocks[-1].norm1)(total.flatten(1, 2)))
    return network.head(x).argmax(-1).unflatten(1, (sets.shape[1], -1))


def accuracy(data: Data, batch: int, predict: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the share of correct answers among the test tokens asked for (K, S), for predictions (K, S, B, T) of S predictors."""

    @torch.no_grad()  # repeated here because grad mode is local to a thread
    def count_correct(start: int) -> Tensor:
        targets = data.test.targets[:, None, start : start + batch]  # (K, 1, B, T)
        correct = predict(data.test.inputs[:, start : start + batch]) == targets
        return torch.stack([correct.flatten(2).sum(2), (targets != -1).flatten(2).sum(2).expand(correct.shape[:2])])

    parts = BESIDE if data.test.inputs.device.type == "cpu" else 1
    correct, total = sum(at_once(count_correct, range(0, data.test.inputs.shape[1], batch), parts), torch.tensor(0))
    return correct / total


Item = TypeVar("Item")
Result = TypeVar("Result")


def at_once(compute: Callable[[Item], Result], items: Iterable[Item], most: int) -> list[Result]:
    """Return `compute` of each item, in order, with at most `most` at a time.

    `compute` is called from several threads and must set the torch modes that it needs itself.
    """
    listed, threads = list(items), torch.get_num_threads()
    workers = min(threads, len(listed), most)
    if workers < 2:
        return [compute(item) for item in listed]
    torch.set_num_threads(1)  # for each thread that starts from here on
    try:
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(compute, listed))
    finally:
        torch.set_num_threads(threads)


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
        # Rows (parent, head).
        children, parent_of = np.unique(np.column_stack([parent_of, distinct[:, layer]]), axis=0, return_inverse=True)
        parent_of = parent_of.reshape(-1)
        before = None if full is None else block.norm1(full[layer]) if block.placement == "pre" else full[layer]
        frozen = None if before is None else block.attention.weights(before)
        x = follow_layer(block, x, children, frozen)
    return x if np.array_equal(parent_of, np.arange(x.shape[1])) else x[:, parent_of]


def follow_layer(block: Any, x: Tensor, children: np.ndarray, frozen: Tensor | None) -> Tensor:
    """Return the states (K, C, B, T, D) after a layer from those before it (K, N, B, T, D). `children` (C, 2) are rows (parent, head)."""
    parents, heads = children.T
    states = x.new_empty(x.shape[0], len(children), *x.shape[2:])
    skipping = np.flatnonzero(heads == SKIP)
    states[:, skipping] = x[:, parents[skipping]]
    active = np.unique(parents[heads != SKIP])
    # States to compute at a time: a few on a CPU, all on a GPU.
    few = max(1, CACHED // x[:, 0].numel()) if x.device.type == "cpu" else max(1, len(active))
    for part in (active[start : start + few] for start in range(0, len(active), few)):
        contexts = head_contexts(block, x[:, part], frozen)  # (K, A, B, H, T, d)
        of_part = np.isin(parents, part)
        for head in range(block.attention.heads):
            rows = np.flatnonzero(of_part & (heads == head))
            if not len(rows):  # none of the paths takes this head here
                continue
            context = contexts[:, np.searchsorted(part, parents[rows]), :, head]  # (K, R, B, T, d)
            y = block.attention.emit(context.flatten(1, 2), head)
            y = y if block.placement == "pre" else without_gain(block.norm1)(y)
            states[:, rows] = token_wise(block, y).view(*context.shape[:-1], -1)
    return states


def head_contexts(block: Any, x: Tensor, frozen: Tensor | None) -> Tensor:
    """Return P_h (X W_V,h + 1 b_V,h) of every head, for states (K, A, B, T, D); P_h is from x, or `frozen` (K, B, H, T, T)."""
    count, samples = x.shape[1:3]
    flat = x.flatten(1, 2)
    # The attention of a pre-norm block reads the normalised state.
    before = without_gain(block.norm1)(flat) if block.placement == "pre" else flat
    # (K, A*B, H, T, T)
    weights = block.attention.weights(before) if frozen is None else frozen.repeat(1, count, 1, 1, 1)
    contexts: Tensor = block.attention.contexts(weights, before).unflatten(1, (count, samples))
    return contexts


def token_wise(block: Any, x: Tensor) -> Tensor:
    """Apply the part of a block after its attention, which acts on each token alone."""
    if block.mlp is None:
        return x
    if block.placement == "pre":
        return block.mlp_residual(x, block.mlp(without_gain(block.norm2)(x)))
    return without_gain(block.norm2)(block.mlp_residual(x, block.mlp(x)))


def without_gain(norm: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return a norm without its gain and bias."""
    return getattr(norm, "plain", norm)
