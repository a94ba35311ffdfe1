"""Stable sorting of equal numbers.

`sort` and `topk` of PyTorch return equal numbers in any order; the machine keeps their order. Both are correct, but a network that uses the
indices computes different results. So the reference for the machine sorts stably too.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


class SortsStably(TorchFunctionMode):
    """Replace functions, not dispatched operations: under a dispatch mode, autograd uses other formulas for products than in training."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        return STABLE.get(func, func)(*args, **(kwargs or {}))


def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Any:
    return torch.sort(input, dim=dim, descending=descending, stable=True)


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    found: Tensor = sort(input, dim, descending).indices
    return found


def msort(input: Tensor) -> Tensor:
    found: Tensor = sort(input, 0).values
    return found


def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    if input.dim() == 0:
        return torch.topk(input, k)
    return torch.return_types.topk(tuple(x.narrow(dim, 0, k) for x in sort(input, dim, largest)))


STABLE: dict[Any, Callable[..., Any]] = {
    getattr(owner, one.__name__): one for owner in (torch, Tensor) for one in (sort, argsort, msort, topk)
}
