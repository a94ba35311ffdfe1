"""A recorder of one forward pass that keeps the tensors of each attention layer.

A tensor is identified by its origin: a linear map, the softmax over tokens, or the product of weights and values. Operations that
only move entries (views, slices, repeats, dropout in eval mode) pass the origin on. All tensors of a layer are kept until its
residual addition, so that no id() is used twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from rankfall.streams.arguments import in_float64
from rankfall.streams.flow import Flow
from rankfall.streams.frames import Call, Frames
from rankfall.streams.record import ADDS, PRODUCTS, SAME_STATE, SOFTMAX, over_tokens, summands_of, tensors_in
from rankfall.streams.trace import ADD

MOVES = SAME_STATE | {
    "__getitem__", "split", "chunk", "unbind", "narrow", "select", "split_with_sizes", "repeat_interleave", "dropout_",
    "repeat", "broadcast_to", "cat", "tensor_split",
}  # fmt: skip
MATMUL = frozenset({"matmul", "bmm", "__matmul__"})


@dataclass(frozen=True)
class LinearMap:
    """A linear map in the pass: its input, its weight (in, out), its bias."""

    read: Tensor
    weight: Tensor
    bias: Tensor | None


@dataclass
class Followed:
    """One layer's attention, as the model computed it."""

    weights: Tensor  # (B, H, T, T)
    scores: Tensor  # (B, H, T, T), plus sinks that are no tokens
    score_width: int
    values: Tensor  # (B, H, T, d_v)
    read: Tensor | None  # the input of the linear map that gives the values
    output: tuple[Tensor, Tensor | None] | None = None  # weight (H*d_v, D) or (H, d_v, D), and bias
    attended: Tensor | None = None
    skip: Tensor | None = None
    branch: Tensor | None = None
    total: Tensor | None = None
    norm: tuple[str, Tensor] | None = None  # name of the module that read the total, and its output
    state: Tensor | None = None  # the skip of the MLP: the total, or its norm


@dataclass(frozen=True)
class Softmaxed:
    """The origin of attention weights: their scores and the width of queries and keys."""

    scores: Tensor
    score_width: int


class Follower(TorchFunctionMode):
    """Mode that records the attention of each layer in `layers` while it is active."""

    def __init__(self, flow: Flow, frames: Frames, heads: int) -> None:
        super().__init__()
        self.layers: dict[int, Followed] = {}
        self._frames, self._heads = frames, heads
        self._branches = {branch.operation: branch for branch in flow.branches}
        self._origin: dict[int, LinearMap | Softmaxed | Followed] = {}
        self._kept: list[Any] = []
        self._open: Followed | None = None
        self._last: Followed | None = None
        self._score_width = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if func in ADDS:
            operation = self._frames.operation(ADD)
            branch = self._branches.get(operation) if operation is not None else None
            if branch is not None:
                if branch.mixes:
                    return self._join(branch.layer, branch.skip, func, args, kwargs)
                if self._last is not None and not branch.parallel:
                    self._last.state = _pair(args, kwargs)[branch.skip].clone()
        result = in_float64(func, args, kwargs)
        if func in PRODUCTS:
            self._linear(func, args, kwargs, result)
        elif func in SOFTMAX and isinstance(result, Tensor) and over_tokens(result):
            self._remember(result, Softmaxed(args[0] if args else kwargs["input"], self._score_width), args)
        elif name in MATMUL:
            self._product(args, kwargs, result)
        elif name == "baddbmm":
            self._product(args[1:], kwargs, result)
        elif name == "einsum":
            self._einsum(args, result)
        elif name in MOVES:
            self._move(args, kwargs, result)
        return result

    def leave(self, call: Call, inputs: Any, output: Any) -> None:
        """Record the norm that reads the state after the addition; `Frames` calls this after every module."""
        last = self._last
        if last is None or last.norm is not None or not inputs or inputs[0] is not last.total:
            return
        if isinstance(output, Tensor) and output.shape == last.total.shape:
            last.norm = (call.module, output)

    def _remember(self, result: Tensor, origin: LinearMap | Softmaxed | Followed, *keep: Any) -> None:
        self._origin[id(result)] = origin
        self._kept.append((result, *keep))

    def _from(self, value: Any) -> LinearMap | Softmaxed | Followed | None:
        return self._origin.get(id(value)) if isinstance(value, Tensor) else None

    def _move(self, args: Any, kwargs: Any, result: Any) -> None:
        origins = [self._from(tensor) for _, tensor in tensors_in((args, kwargs))]
        origin = origins[0] if origins else None
        if origin is not None:
            for _, tensor in tensors_in(result):
                self._remember(tensor, origin)

    def _linear(self, func: Any, args: Any, kwargs: Any, result: Tensor) -> None:
        if func is torch.addmm:
            bias, read, weight = args[0], args[1], args[2]
        else:
            arguments = dict(zip(("input", "weight", "bias"), args)) | kwargs
            bias, read, weight = arguments.get("bias"), arguments["input"], arguments["weight"].T
        self._map(read, weight, bias, result)

    def _map(self, read: Tensor, weight: Tensor, bias: Tensor | None, result: Tensor) -> None:
        origin = self._from(read)
        if isinstance(origin, Followed) and origin.output is None:
            origin.output, origin.attended = (weight, bias), result
            self._kept.append(result)
            return
        self._remember(result, LinearMap(read, weight, bias), read)

    def _product(self, args: Any, kwargs: Any, result: Tensor) -> None:
        """Record a matrix product: of weights and values, of a state and a matrix, or of queries and keys."""
        operands = [tensor for _, tensor in tensors_in((args, kwargs))]
        if len(operands) != 2:
            return
        origin = self._from(operands[0])
        if isinstance(origin, Softmaxed):
            heads = (-1, self._heads)
            weights, values = (x if x.dim() == 4 else x.unflatten(0, heads) for x in operands)
            self._attended(origin, weights, values.expand(*weights.shape[:-1], values.shape[-1]), operands[1], result)
        elif operands[1].dim() == 2:  # a linear map written as a matrix product
            self._map(operands[0], operands[1], None, result)
        elif result.dim() >= 3 and over_tokens(result):
            self._score_width = operands[0].shape[-1]

    def _einsum(self, args: Any, result: Tensor) -> None:
        """Record a product written as a sum over named axes, as in XLNet."""
        operands = args[1] if len(args) == 2 and isinstance(args[1], (tuple, list)) else args[1:]
        terms, _, out = args[0].replace(" ", "").partition("->")
        left, _, right = terms.partition(",")
        if len(operands) != 2 or not right or "." in terms:
            return
        summed = [axis for axis in left if axis in right and axis not in out]
        origin = self._from(operands[0])
        if isinstance(origin, Softmaxed):
            features = [axis for axis in right if axis not in left]
            if operands[0].dim() == 4 and len(features) == 1 and summed == [left[3]]:
                values = torch.einsum(f"{right}->{left[:2]}{left[3]}{features[0]}", operands[1])
                self._attended(origin, operands[0], values, operands[1], result)
        elif isinstance(origin, Followed) or not set(out) - set(left + right):
            free = [axis for axis in right if axis not in summed]
            if summed and all(axis not in left for axis in free):
                weight = torch.einsum(f"{right}->{''.join(summed)}{''.join(free)}", operands[1])
                self._map(operands[0], weight, None, result)
            elif result.dim() == 4 and over_tokens(result) and len(summed) == 1:
                self._score_width = operands[0].shape[left.index(summed[0])]

    def _attended(self, origin: Softmaxed, weights: Tensor, values: Tensor, source: Tensor, result: Tensor) -> None:
        scores = origin.scores if origin.scores.dim() == 4 else origin.scores.unflatten(0, (-1, self._heads))
        value_map = self._from(source)
        read = value_map.read if isinstance(value_map, LinearMap) else None
        self._open = Followed(weights, scores, origin.score_width, values, read)
        self._remember(result, self._open)

    def _join(self, layer: int, skip: int, func: Any, args: Any, kwargs: Any) -> Any:
        """Return the sum of an attention's residual addition, which completes the record of its layer."""
        pair = _pair(args, kwargs)
        state, branch = pair[skip], pair[1 - skip]
        state, branch = (x.clone() if func.__name__ in ("add_", "__iadd__") else x for x in (state, branch))
        result = func(*args, **kwargs)
        if self._open is not None:
            self._open.skip, self._open.branch, self._open.total = state, branch, result
            self.layers[layer] = self._last = self._open
        self._open = None
        self._origin.clear()
        self._kept.clear()
        return result


def _pair(args: Any, kwargs: Any) -> tuple[Tensor, Tensor]:
    """Return the two summands of an addition that is known to add tensors."""
    pair = summands_of(args, kwargs)
    assert pair is not None
    return pair
