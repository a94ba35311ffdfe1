"""One pass of any module as a graph. As `record.py`, but a weight is a leaf of its own, since a stream can begin with one (latents)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.overrides import TorchFunctionMode

from rankfall.models.forward import in_float64
from rankfall.models.frames import Call, Frames
from rankfall.models.record import ADDS, FUSED_ATTENTION, SOFTMAX, Node, tensors_in

ANY, ADD, ATTEND = "any", "add", "attend"  # kinds of operations that are counted in each call
# What computes new features from a state; a norm, a scale or a change of layout does not.
MAPS = frozenset(
    {
        "linear", "addmm", "matmul", "__matmul__", "__rmatmul__", "bmm", "baddbmm", "einsum", "mm", "mv", "tensordot", "conv1d",
        "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "bilinear", "scaled_dot_product_attention",
        "multi_head_attention_forward", "embedding", "fft_fftn", "fft_fft2", "fft_fft",
    }
)  # fmt: skip


def is_attention(func: Any, result: Any) -> bool:
    """Whether an operation makes or uses weights of attention: a softmax over more than one place, or one of the fused functions."""
    if func in FUSED_ATTENTION:
        return True
    return func in SOFTMAX and isinstance(result, Tensor) and result.dim() >= 3 and min(result.shape[-2:]) > 1


def summands(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Tensor, Tensor] | None:
    """The two tensors of an addition, in the order in which they are given."""
    left = args[0] if args else kwargs.get("input")
    right = args[1] if len(args) > 1 else kwargs.get("other")
    return (left, right) if isinstance(left, Tensor) and isinstance(right, Tensor) else None


def addition(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The kind that an addition is counted as: with its shape, since sums over the tokens of an expert come and go with routing."""
    pair = summands(args, kwargs)
    return f"{ADD} {tuple(max(pair, key=torch.numel).shape)}" if pair else ADD


class Tracer(TorchFunctionMode):
    """Records every torch function called on tensors while it is active. All tensors are kept, so that no id() is used twice."""

    def __init__(self, frames: Frames) -> None:
        super().__init__()
        self.nodes: list[Node] = []
        self.tensors: list[Any] = []  # of each node
        self.outputs: dict[Call, list[tuple[tuple[Any, ...], int]]] = {}
        self.inputs: dict[Call, int] = {}  # the first tensor that each call was given
        self.weights: set[int] = set()
        self._frames = frames
        self._known: dict[int, int] = {}

    def node_of(self, tensor: Tensor) -> int:
        """The newest node of a tensor; one that no recorded operation made becomes a leaf."""
        index = self._known.get(id(tensor))
        if index is None:
            index = self._add(tensor, "leaf", (), leaf=True)
            if isinstance(tensor, Parameter):
                self.weights.add(index)
        return index

    def left(self, call: Call, inputs: Any, output: Any) -> None:
        """For Frames: remember what a module call returned."""
        first = next((tensor for _, tensor in tensors_in(inputs)), None)
        if first is not None:
            self.inputs[call] = self.node_of(first)
        self.outputs[call] = [(path, self.node_of(tensor)) for path, tensor in tensors_in(output)]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        operation, operands = self._frames.operation(ANY), None
        if func in ADDS:
            operation = self._frames.operation(addition(args, kwargs))
            pair = summands(args, kwargs)
            operands = (self.node_of(pair[0]), self.node_of(pair[1])) if pair else None
        elif func in SOFTMAX or func in FUSED_ATTENTION:
            operation = self._frames.operation(ATTEND)
        name = getattr(func, "__name__", str(func))
        # `x.expand_as(y)` takes y's shape only, and `zeros_like(x)` x's: no value flows from there.
        given = args[:1] if name.endswith("_as") else () if name.endswith("_like") else (args, kwargs)
        parents = tuple(self.node_of(tensor) for _, tensor in tensors_in(given))
        result = in_float64(func, args, kwargs)
        if name == "__setitem__":  # writes into its first argument and returns nothing
            self._add(args[0], name, parents)
            return result
        if name in ("__get__", "__set__") and not isinstance(result, Tensor):
            return result
        attends = is_attention(func, result)
        for _, tensor in tensors_in(result):
            self._add(tensor, name, parents, operation=operation, operands=operands, attends=attends)
        return result

    def _add(self, tensor: Tensor, op: str, parents: tuple[int, ...], **facts: Any) -> int:
        index = len(self.nodes)
        shape = tuple(torch.Tensor.size(tensor)) if tensor.layout == torch.strided else ()
        self.nodes.append(Node(index, op, parents, shape, self._frames.stack, **facts))
        self._known[id(tensor)] = index
        self.tensors.append(tensor)
        return index
