"""The norm of the gradients of queries and keys at a step, and the gradient and the update of every parameter.

The weights of queries and keys in a block are known by their names. A matrix that holds queries, keys and values one after the other
(`nn.MultiheadAttention`, GPT-2's `c_attn`, `qkv`) is split into thirds. A matrix that interleaves them by head (`query_key_value`) does not
show where they are, so the norm is null.

For updates, weights are copied when the measured pass begins, and compared after the update, so that one step needs the memory of a second
copy.
"""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.errors import RankfallError
from rankfall.streams.names import inner_modules
from rankfall.watch.columns import PARAMETER
from rankfall.watch.statistics import wide_dtype

QUERIES = (
    "q", "q_proj", "query", "queries", "wq", "w_q", "to_q", "q_lin", "q_linear", "q_net", "query_proj", "q_a_proj", "q_b_proj", "query_net",
    "linear_q", "fc_q", "w_qs", "q_proj_weight",
)  # fmt: skip
KEYS = (
    "k", "k_proj", "key", "keys", "wk", "w_k", "to_k", "k_lin", "k_linear", "k_net", "key_proj", "key_net", "linear_k", "fc_k", "w_ks",
    "k_proj_weight",
)  # fmt: skip
JOINT = (
    "in_proj_weight", "c_attn", "qkv", "qkv_proj", "wqkv", "to_qkv", "qkv_net", "attn_qkv", "in_proj_qkv", "w_qkv", "linear_qkv",
)  # fmt: skip
INTERLEAVED = ("query_key_value",)
NO_SELF_ATTENTION = re.compile(r"cross|encoder_attn|encdec|enc_dec|multihead_attn|relative", re.IGNORECASE)
AS_FUNCTIONS = "say queries= and keys= as functions of the block that return weights"
Wanted = str | Sequence[str] | Callable[[nn.Module], Iterable[Tensor]]
Part = tuple[nn.Parameter, int, int]  # a weight, the axis of its outputs, and which third of it counts; -1: the whole


@dataclass(frozen=True)
class QueryKeyWeights:
    """The weights of queries and keys in one block."""

    queries: tuple[Part, ...]
    keys: tuple[Part, ...]
    reason: str  # why there are none


def query_key_weights(
    block: nn.Module | None, queries: Wanted | None = None, keys: Wanted | None = None
) -> QueryKeyWeights:
    """Return the weights of queries and keys in a block, or none for a layer that is no module."""
    if block is None:
        return QueryKeyWeights((), (), "the layer is no module, so that its weights are not known")
    named = [(name, weight) for name, weight in block.named_parameters() if weight.ndim >= 2]
    *by_names, reason = weights_by_name(block, named)
    chosen = [
        choose(block, named, wanted) if wanted is not None else parts
        for wanted, parts in zip((queries, keys), by_names)
    ]
    return QueryKeyWeights(tuple(chosen[0]), tuple(chosen[1]), reason if not all(chosen) else "")


def weights_by_name(block: nn.Module, named: list[tuple[str, nn.Parameter]]) -> tuple[list[Part], list[Part], str]:
    """Return the weights of queries, those of keys, and the reason if there are none."""
    queries: list[Part] = []
    keys: list[Part] = []
    reason = "no weights of queries and keys are known by their names: say queries= and keys="
    for name, weight in named:
        words = [word.lower() for word in name.split(".")]
        if NO_SELF_ATTENTION.search(name):
            continue
        if any(word in INTERLEAVED for word in words):
            reason = f"{name} holds queries, keys and values head by head: {AS_FUNCTIONS}"
        elif any(word in JOINT for word in words):
            axis = 1 if is_transposed(block, name) else 0
            if weight.shape[axis] == 3 * weight.shape[1 - axis] or words[-1] == "in_proj_weight":
                queries.append((weight, axis, 0))
                keys.append((weight, axis, 1))
            else:
                reason = f"{name} holds queries, keys and values of unknown sizes: {AS_FUNCTIONS}"
        elif any(word in QUERIES for word in words):
            queries.append((weight, 0, -1))
        elif any(word in KEYS for word in words):
            keys.append((weight, 0, -1))
    return queries, keys, reason


def is_transposed(block: nn.Module, name: str) -> bool:
    """Return whether a weight is (in, out), as in the Conv1D of Hugging Face's GPT-2."""
    owner = block.get_submodule(name.rpartition(".")[0])
    return type(owner).__name__ == "Conv1D" and hasattr(owner, "nf")


def choose(block: nn.Module, named: list[tuple[str, nn.Parameter]], wanted: Wanted) -> list[Part]:
    """Return the weights that match globs of names inside the block, or those that a function of the block returns."""
    if callable(wanted):
        return [(weight, 0, -1) for weight in wanted(block)]  # type: ignore[misc]
    globs = [wanted] if isinstance(wanted, str) else list(wanted)
    parts: list[Part] = [
        (weight, 0, -1) for name, weight in named if any(fnmatch.fnmatchcase(name, glob) for glob in globs)
    ]
    if not parts:
        inside = ", ".join(name for name, _ in named[:8])
        raise RankfallError(
            f"{', '.join(globs)} names no weight of a block: say a glob such as '*.q_proj.weight'; there are {inside}"
        )
    return parts


def squared_norm(parts: Sequence[Part], scale: float = 1.0, together: bool = False) -> tuple[Tensor | None, str]:
    """Return the squared Frobenius norm () of the gradients of all parts together, or None and the reason.

    `scale`: the loss scale of the gradients. `together`: whether the mean over processes will be taken. The square of a gradient that is
    spread over processes is then multiplied by the number of shards, so that the mean is the square of the whole.
    """
    squares = []
    for weight, axis, third in parts:
        gradient: Any = weight.grad
        if gradient is None or gradient.is_sparse:
            continue
        if hasattr(gradient, "to_local") and not together:
            return None, "the gradient is spread over several processes, which are not measured together"
        gradient, shards = local_part(gradient.detach(), axis, third)
        squares.append(shards * sum_of_squares(gradient))
    if not squares:
        return None, "its weights had no gradient at the step: they are frozen, or gradients were set to None before"
    return torch.stack(squares).sum() / scale**2, ""


def sum_of_squares(values: Tensor) -> Tensor:
    """Return the sum of squares (), in a wide number format."""
    return torch.linalg.vector_norm(values, dtype=wide_dtype(values)).square()


def local_part(gradient: Any, axis: int, third: int) -> tuple[Tensor, int]:
    """Return the part of a DTensor, or of a third of it, that this process holds, and the number of shards: 1 for other tensors."""
    if not hasattr(gradient, "to_local"):
        return gradient if third < 0 else gradient.chunk(3, axis)[third], 1
    partial = any(placement.is_partial() for placement in gradient.placements)
    if partial or sum(placement.is_shard(axis) for placement in gradient.placements) > 1:
        whole = gradient.full_tensor()
        return whole if third < 0 else whole.chunk(3, axis)[third], 1
    local, mesh, shards = gradient.to_local(), gradient.device_mesh, 1
    begin, whole = 0, gradient.shape[axis]
    for place, placement in enumerate(gradient.placements):
        shards *= mesh.size(place) if placement.is_shard() else 1
        if placement.is_shard(axis):  # shards are as large as those of Tensor.chunk
            begin = mesh.get_local_rank(place) * math.ceil(whole / mesh.size(place))
    if third >= 0:
        ends = [min(max(at * (whole // 3) - begin, 0), local.shape[axis]) for at in (third, third + 1)]
        local = local.narrow(axis, ends[0], ends[1] - ends[0])
    return local, shards


class Parameters:
    """The parameters of a model, by their names inside wrappers."""

    def __init__(self, model: nn.Module) -> None:
        by_id: dict[int, tuple[str, nn.Parameter]] = {}
        for name, module in inner_modules(model):
            for key, weight in module.named_parameters(recurse=False):
                by_id.setdefault(id(weight), (f"{name}.{key}".strip("."), weight))
        self.names = [name for name, _ in by_id.values()]
        self.weights = [weight for _, weight in by_id.values()]
        self.before: list[Tensor] = []
        self.versions: list[int] = []
        self.gradients: list[Tensor | None] = []

    def keep_weights(self) -> None:
        """Copy the part of the weights that this process holds."""
        self.before = [local_part(weight.detach(), 0, -1)[0].clone() for weight in self.weights]
        self.versions = [weight._version for weight in self.weights]

    def keep_gradients(self, scale: float, together: bool) -> None:
        self.gradients = [squared_norm([(weight, 0, -1)], scale, together)[0] for weight in self.weights]

    def are_updated(self) -> bool:
        """Return whether an optimiser has written to the weights since they were copied."""
        return any(weight._version != version for weight, version in zip(self.weights, self.versions))

    def take_squares(self, together: bool) -> Tensor:
        """Return the squared norms (P, 3) of gradients, updates and old weights, NaN where not known. Drop the copy of the weights."""
        rows = []
        device = next((weight.device for weight in self.before), torch.device("cpu"))
        none = torch.full((), torch.nan, dtype=wide_dtype(torch.empty(0, device=device)), device=device)
        for weight, before, gradient in zip(self.weights, self.before, self.gradients):
            now, shards = local_part(weight.detach(), 0, -1)
            known = shards == 1 or together
            squares = [shards * sum_of_squares(values) if known else none for values in (now - before, before)]
            rows.append(torch.stack([none if gradient is None else gradient.to(none.device), *squares]))
        self.before = []
        return torch.stack(rows)


def parameter_rows(names: Sequence[str], sums: Tensor, layers: Sequence[str]) -> list[list[dict[str, Any]]]:
    """Return the parameters of each layer, by the names of their modules. Layer 0 gets those outside all layers. `sums` (P, 3, 2)"""
    rows: list[list[dict[str, Any]]] = [[] for _ in layers]
    squares = (sums[..., 0] / sums[..., 1]).tolist()  # 0 / 0 is NaN
    for name, (gradient, update, weight) in zip(names, squares):
        layer = next((number for number, block in enumerate(layers) if block and name.startswith(f"{block}.")), 0)
        ratio = update / weight if weight else float("nan")
        values = [None if not 0 <= square < float("inf") else square**0.5 for square in (gradient, ratio)]
        rows[layer].append({"name": name, **dict(zip(PARAMETER, values))})
    return rows
