"""Decompositions of operations that are kernels in PyTorch into operations that the machine supports."""

import math
from collections.abc import Callable
from functools import cache, partial
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from thousandfold.graph import Untraceable

ORDERED = 32  # largest size to sort or multiply: each number takes a pass, so autograd is faster for more


@cache
def table() -> dict[Any, Callable[..., Any]]:
    """Return operation -> decomposition. On constants, PyTorch's kernels run instead, also for cases that are refused here."""
    aten = torch.ops.aten
    return {
        aten.max.dim: largest,
        aten.min.dim: smallest,
        aten.argmin.default: place_of_smallest,
        aten.round.default: round_half_to_even,
        aten.ceil.default: lambda x: -torch.floor(-x),
        aten.trunc.default: lambda x: torch.sign(x) * torch.floor(x.abs()),
        aten.exp2.default: lambda x: torch.pow(2.0, x),
        aten.log2.default: partial(logarithm_to, 2.0),
        aten.log10.default: partial(logarithm_to, 10.0),
        aten.hypot.default: hypotenuse,
        aten.isnan.default: lambda x: x != x,
        aten.isinf.default: lambda x: x.abs() == math.inf,
        aten.logical_xor.default: lambda x, y: (x != 0) != (y != 0),
        aten.hardshrink_backward.default: shrink_gradient,
        aten.softshrink_backward.default: shrink_gradient,
        aten.cumprod.default: running_product,
        aten.prod.dim_int: product,
        aten.sort.default: order,
        aten.sort.stable: order_stably,
        aten.topk.default: first_in_order,
        aten.diagonal.default: diagonal,
        aten.diagonal_backward.default: diagonal_gradient,
    }


def largest(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the maximum and its index."""
    return x.amax(dim, keepdim), x.argmax(dim, keepdim)


def smallest(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return x.amin(dim, keepdim), (-x).argmax(dim, keepdim)


def place_of_smallest(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return (-x).argmax(dim, keepdim)


def round_half_to_even(x: Tensor) -> Tensor:
    below = torch.floor(x)
    rest, odd = x - below, below - 2 * torch.floor(below * 0.5)
    return below + ((rest > 0.5) | ((rest == 0.5) & (odd == 1))).to(x.dtype)


def logarithm_to(base: float, x: Tensor) -> Tensor:
    """Return a logarithm that is exact at whole powers of the base, where steps of a quantiser lie."""
    found = torch.log(x) / math.log(base)
    whole = round_half_to_even(found)
    return torch.where(torch.pow(base, whole) == x, whole, found)


def hypotenuse(x: Tensor, y: Tensor) -> Tensor:
    """Return sqrt(x^2 + y^2), whose squares may overflow. It is infinite beside an infinite number, even if the other is NaN."""
    x, y = x.abs(), y.abs()
    most, least = torch.maximum(x, y), torch.minimum(x, y)
    share = least / torch.where(most == 0, torch.ones_like(most), most)
    found = most * torch.sqrt(share * share + 1)
    return torch.where((x == math.inf) | (y == math.inf), torch.full_like(x, math.inf), found)


def shrink_gradient(gradient: Tensor, x: Tensor, within: float) -> Tensor:
    return torch.where(x.abs() <= within, torch.zeros_like(gradient), gradient)


def diagonal(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    x = x.movedim((dim1, dim2), (-2, -1))
    rows, columns = x.shape[-2:]
    on, first, count = diagonal_places(rows, columns, offset)
    found = torch.where(on, x, torch.zeros_like(x)).sum(-1)
    return found[..., first : first + count]


def diagonal_gradient(gradient: Tensor, sizes: list[int], offset: int, dim1: int, dim2: int) -> Tensor:
    rows, columns = sizes[dim1], sizes[dim2]
    on, first, count = diagonal_places(rows, columns, offset)
    whole = torch.nn.functional.pad(gradient, (first, rows - first - count)).unsqueeze(-1)  # (..., rows, 1)
    return torch.where(on, whole, torch.zeros_like(whole)).movedim((-2, -1), (dim1, dim2))


def diagonal_places(rows: int, columns: int, offset: int) -> tuple[Tensor, int, int]:
    """Return a mask of the diagonal (rows, columns), its first row and its length."""
    on = torch.arange(rows).unsqueeze(1) + offset == torch.arange(columns)
    first = min(rows, max(0, -offset))
    return on, first, max(0, min(rows - first, columns - max(0, offset)))


def running_product(x: Tensor, dim: int) -> Tensor:
    check_size(x, dim, "cumprod")
    return torch.stack(products(x, dim), dim) if x.shape[dim] else x.clone()


def product(x: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    check_size(x, dim, "prod")
    last = products(x, dim)[-1] if x.shape[dim] else torch.ones_like(x.sum(dim))
    return last.unsqueeze(dim) if keepdim else last


def products(x: Tensor, dim: int) -> list[Tensor]:
    """Return the running products along a dimension."""
    return list(accumulate(x.unbind(dim), torch.mul))


def order(x: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    check_size(x, dim, "sort")
    return first_of(x, x.shape[dim], dim, descending)


def order_stably(
    x: Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[Tensor, Tensor]:
    """Sort stably, as `order` always does."""
    return order(x, dim, descending)


def first_in_order(
    x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    check_size(x, dim, "topk")
    return first_of(x, k, dim, largest)


def first_of(x: Tensor, count: int, dim: int, descending: bool) -> tuple[Tensor, Tensor]:
    """Select the first `count` numbers in sorted order, one after another. Of equal numbers, the first comes first."""
    key, taken = sort_key(x, descending)
    at, indices = torch.arange(x.shape[dim]).view([-1 if i == dim % x.dim() else 1 for i in range(x.dim())]), []
    for _ in range(count):
        indices.append(key.argmax(dim, keepdim=True))
        key = torch.where(at == indices[-1], torch.full_like(key, taken), key)
    found = torch.cat(indices, dim) if indices else torch.empty_like(x.narrow(dim, 0, 0), dtype=torch.int64)
    return x.gather(dim, found), found


def sort_key(x: Tensor, descending: bool) -> tuple[Tensor, float]:
    """Return a key that is larger for numbers that come earlier, and a number below all keys."""
    if not x.dtype.is_floating_point:  # indices
        key = x.to(torch.int64)
        return key if descending else -key, -(2**24)
    # Masked scores are -inf. They get the smallest finite number as their key, and this number gets the next one.
    key, about = x if descending else -x, torch.finfo(x.dtype)
    least, next_least = about.min, about.min * (1 - about.eps)
    if descending:  # NaN comes first, as in `argmax`
        return torch.where(key == -math.inf, least, key.clamp(min=next_least)), -math.inf
    key = torch.where(key == -math.inf, next_least, key.clamp(min=about.min * (1 - 2 * about.eps)))
    return torch.where(x != x, least, key), -math.inf  # NaN comes last


def check_size(x: Tensor, dim: int, name: str) -> None:
    """Raise if a dimension is too long to be worth it, or if a product is of integers."""
    if x.shape[dim] > ORDERED:
        raise Untraceable(f"{name} of {x.shape[dim]} numbers, more than {ORDERED}")
    if name in ("cumprod", "prod") and not x.dtype.is_floating_point:
        raise Untraceable(f"{name} of integers")
