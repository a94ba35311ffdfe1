"""One pass of any module as a graph. Every operation counts, and each weight is a separate leaf, since a stream can begin with one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from rankfall.streams.forward import in_float64
from rankfall.streams.frames import Call, Frames, Operation
from rankfall.streams.record import (
    ADDS,
    FUSED_ATTENTION,
    PRODUCTS,
    SOFTMAX,
    Node,
    Recorder,
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


class Tracer(Recorder):
    """Recorder that counts every operation by kind and keeps the first input of every call.

    If `shaped`, the name of an addition includes its shape, so that it holds for inputs of the same shape only.
    """

    def __init__(self, frames: Frames, shaped: bool = True) -> None:
        super().__init__(frames)
        self.shaped = shaped
        self.inputs: dict[Call, int] = {}  # node of the first input of each call
        self.weights: set[int] = set()

    def node_of(self, tensor: Tensor) -> int:
        index = super().node_of(tensor)
        if isinstance(tensor, Parameter) and self.nodes[index].leaf:
            self.weights.add(index)
        return index

    def left(self, call: Call, inputs: Any, output: Any) -> None:
        first = next((tensor for _, tensor in tensors_in(inputs)), None)
        if first is not None:
            self.inputs[call] = self.node_of(first)
        super().left(call, inputs, output)

    def count(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Operation | None:
        found = self._frames.operation(ANY)
        if func in ADDS:
            found = self._frames.operation(addition(args, kwargs) if self.shaped else ADD)
        elif func in PRODUCTS:
            found = self._frames.operation(PRODUCT)
        elif func in SOFTMAX or func in FUSED_ATTENTION:
            found = self._frames.operation(ATTEND)
        return found

    def compute(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return in_float64(func, args, kwargs)

    def attends(self, func: Any, result: Tensor) -> bool:
        over_places = func in SOFTMAX and result.dim() >= 3 and min(result.shape[-2:]) > 1
        return over_places or func in FUSED_ATTENTION


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
        return (func in SOFTMAX and over_tokens(result)) or func in FUSED_ATTENTION
