"""Bounds of the integers in a graph. They are stored as numbers of the program's format, which is exact up to LARGEST."""

import math
from collections.abc import Iterator
from typing import Any

import torch

from thousandfold.graph import AtenGraph, AtenOperation, Ref, replace_in
from thousandfold.program.atoms import Unsupported
from thousandfold.program.draft import LARGEST, is_integer

PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "mv", "dot")
WRITE = ("full", "scalar_tensor", "where", "clamp", "scatter", "constant_pad_nd")  # write numbers from arguments


class IntegerBounds:
    """Bounds of the absolute values in each tensor of integers, by tensor number."""

    def __init__(self, graph: AtenGraph, largest: int) -> None:
        """Start with the inputs of a graph. `largest`: their largest integer."""
        self.graph = graph
        self.bounds = dict.fromkeys(range(graph.input_count), float(largest))
        if largest > LARGEST and any(is_integer(graph.forms[number].dtype) for number in self.bounds):
            raise Unsupported(
                f"integers up to {largest} in a batch, more than {LARGEST}, up to which the machine is exact"
            )

    def get(self, number: int) -> float:
        if self.graph.forms[number].dtype == torch.bool:
            return 1.0
        if number not in self.bounds and number in self.graph.known:
            value = self.graph.known[number]
            self.bounds[number] = float(value.double().abs().max()) if value.numel() else 0.0
        return self.bounds.get(number, 0.0)

    def add(self, operation: AtenOperation) -> None:
        """Raise if an operation may return integers above LARGEST."""
        for number in operation.outputs:
            if is_integer(self.graph.forms[number].dtype):
                self.bounds[number] = bound = self.bound(operation, math.prod(self.graph.forms[number].shape))
                if bound > LARGEST:
                    raise Unsupported(
                        f"{operation.target} of integers, which may give {bound:.3g}, more than {LARGEST}, up to which the machine is exact"
                    )

    def bound(self, operation: AtenOperation, count: int) -> float:
        """Return a bound of an operation's results. `count`: size of the result."""
        name, inputs = operation.target._schema.name.split("::")[1], operation.inputs
        sizes = [math.prod(self.graph.forms[number].shape) for number in inputs]
        args = [abs(x) if isinstance(x, int | float) else x for x in self.values(operation.args)]
        if name == "argmax":
            dim = operation.args[1] if len(operation.args) > 1 else None
            return sizes[0] if dim is None else self.graph.forms[inputs[0]].shape[dim]
        if name == "sum":
            return args[0] * sizes[0] / max(1, count)
        if name == "mul":
            return args[0] * args[1]
        if name in PRODUCTS:  # (..., n, m) by (..., m, o); some have a bias as the first argument
            joined = self.graph.forms[inputs[-2]].shape[-1]
            return args[-2] * args[-1] * joined + (args[0] if len(inputs) > 2 else 0)
        if name in ("remainder", "full_like"):
            return args[1]
        if name in ("add", "sub"):
            return args[0] + args[1] * abs(operation.kwargs.get("alpha", 1))
        if name in ("scatter_add", "index_put"):
            return args[0] + self.get(inputs[-1]) * sizes[-1]
        written = numbers_among([args, self.values(operation.kwargs)]) if name in WRITE else ()
        return max([self.get(number) for number in inputs] + [abs(x) for x in written], default=LARGEST)

    def values(self, x: Any) -> Any:
        return replace_in(x, Ref, lambda ref: self.get(ref.number))


def numbers_among(x: Any) -> Iterator[float]:
    if isinstance(x, int | float):
        yield x
    for item in x.values() if isinstance(x, dict) else x if isinstance(x, list | tuple) else ():
        yield from numbers_among(item)
