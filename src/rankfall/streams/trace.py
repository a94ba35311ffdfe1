"""One pass of any module as a graph. Every operation counts, and each weight is a separate leaf, since a stream can begin with one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.overrides import TorchFunctionMode

from rankfall.streams.arguments import in_float64
from rankfall.streams.frames import Call, Frames, Operation
from rankfall.streams.record import (
    ADDS,
    PRODUCTS,
    SOFTMAX,
    Node,
    is_fused,
    over_tokens,
    summands_of,
    tensors_in,
)

ANY, ADD, ATTEND, PRODUCT = "any", "add", "attend", "product"  # kinds of operations that are counted in each call
# Operations that compute new features from a state; a norm, a scale or a change of layout does not.
MAPS = frozenset(
    {
        "linear", "addmm", "matmul", "__matmul__", "__rmatmul__", "bmm", "baddbmm", "einsum", "mm", "mv", "tensordot", "conv1d",
        "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "bilinear", "scaled_dot_product_attention",
        "multi_head_attention_forward", "embedding", "fft_fftn", "fft_fft2", "fft_fft",
    }
)  # fmt: skip


def addition(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return the kind under which an addition is counted. It includes the shape, since sums over an expert's tokens depend on routing."""
    pair = summands_of(args, kwargs)
    return f"{ADD} {tuple(max(pair, key=torch.numel).shape)}" if pair else ADD


class Tracer(TorchFunctionMode):
    """Mode that records every torch function called on tensors while it is active.

    All tensors are kept until the graph is read, so that no id() is used twice. If `shaped`, the name of an addition includes its shape, so
    that it holds for inputs of the same shape only.
    """

    def __init__(self, frames: Frames, shaped: bool = True) -> None:
        super().__init__()
        self.shaped = shaped
        self.nodes: list[Node] = []
        self.tensors: list[Any] = []  # one per node, all kept
        self.outputs: dict[Call, list[tuple[tuple[Any, ...], int]]] = {}
        self.inputs: dict[Call, int] = {}  # node of the first input of each call
        self.weights: set[int] = set()
        self._frames = frames
        self._known: dict[int, int] = {}

    def node_of(self, tensor: Tensor) -> int:
        """Return the newest node of a tensor. A tensor from no recorded operation (weight, buffer, input) becomes a leaf."""
        index = self._known.get(id(tensor))
        if index is None:
            index = self._add(tensor, "leaf", (), leaf=True)
        if isinstance(tensor, Parameter) and self.nodes[index].leaf:
            self.weights.add(index)
        return index

    def leave(self, call: Call, inputs: Any, output: Any) -> None:
        """Record the first input and the output of a module call; `Frames` calls this."""
        first = next((tensor for _, tensor in tensors_in(inputs)), None)
        if first is not None:
            self.inputs[call] = self.node_of(first)
        self.outputs[call] = [(path, self.node_of(tensor)) for path, tensor in tensors_in(output)]

    def name(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Operation | None:
        """Return the name by which an operation is known in another pass."""
        operation = self._frames.operation(ANY)
        if func in ADDS:
            operation = self._frames.operation(addition(args, kwargs) if self.shaped else ADD)
        elif func in PRODUCTS:
            operation = self._frames.operation(PRODUCT)
        elif func in SOFTMAX or is_fused(func):
            operation = self._frames.operation(ATTEND)
        return operation

    def attends(self, func: Any, result: Tensor) -> bool:
        """Return whether an operation computes or contains attention weights."""
        over_places = func in SOFTMAX and result.dim() >= 3 and min(result.shape[-2:]) > 1
        return over_places or is_fused(func)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        operation = self.name(func, args, kwargs)
        pair = summands_of(args, kwargs) if func in ADDS else None
        operands = (self.node_of(pair[0]), self.node_of(pair[1])) if pair else None
        name = getattr(func, "__name__", str(func))
        # `x.expand_as(y)` and `zeros_like(x)` read only a shape from y and x: no value flows from there.
        read = args[:1] if name.endswith("_as") else () if name.endswith("_like") else (args, kwargs)
        parents = tuple(self.node_of(tensor) for _, tensor in tensors_in(read))
        result = in_float64(func, args, kwargs)
        if name == "__setitem__":  # writes into its first argument and returns nothing
            self._add(args[0], name, parents)
            return result
        if name in ("__get__", "__set__") and not isinstance(result, Tensor):
            return result
        outputs = list(tensors_in(result))
        for number, (_, tensor) in enumerate(outputs):
            attends, part = self.attends(func, tensor), (number, len(outputs)) if len(outputs) > 1 else None
            self._add(tensor, name, parents, operation=operation, operands=operands, attends=attends, part=part)
        return result

    def _add(self, tensor: Tensor, op: str, parents: tuple[int, ...], **facts: Any) -> int:
        index = len(self.nodes)
        shape = tuple(torch.Tensor.size(tensor)) if tensor.layout == torch.strided else ()
        self.nodes.append(Node(index, op, parents, shape, self._frames.stack, **facts))
        self._known[id(tensor)] = index
        self.tensors.append(tensor)
        return index


class ModelTracer(Tracer):
    """Tracer of models of the library. Its names hold for batches of any size, and it keeps no weight alive.

    Weights may exceed memory, so they share one leaf. A router may have a softmax, too, so only one over the tokens is attention.
    """

    def __init__(self, frames: Frames) -> None:
        super().__init__(frames, shaped=False)
        self.nodes.append(Node(0, "weight", (), (), (), leaf=True))
        self.tensors.append(None)
        self.weights.add(0)

    def node_of(self, tensor: Tensor) -> int:
        return 0 if isinstance(tensor, Parameter) else super().node_of(tensor)

    def attends(self, func: Any, result: Tensor) -> bool:
        return (func in SOFTMAX and over_tokens(result)) or is_fused(func)
