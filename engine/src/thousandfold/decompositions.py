"""Decompositions of ATen operations, so that the machine needs to support only few kinds."""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor
from torch._decomp import core_aten_decompositions, get_decompositions

from thousandfold.graph import Untraceable


@torch.library.custom_op("thousandfold::normal_below", mutates_args=())
def normal_below(x: Tensor, e: Tensor) -> Tensor:
    """Return the normal distribution function Phi(x) from x and e = e^(-x^2 / 2)."""
    raise AssertionError("only traced")


normal_below.register_fake(lambda x, e: torch.empty_like(x))


def normal_at(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return Phi(x) and e^(-x^2 / 2)."""
    e = torch.exp(x * x * -0.5)
    return normal_below(x, e), e


def gelu(otherwise: Callable[..., Tensor], x: Tensor, approximate: str = "none") -> Tensor:
    """Return x Phi(x). `otherwise`: PyTorch's decomposition, for the approximation by a hyperbolic tangent."""
    return otherwise(x, approximate=approximate) if approximate != "none" else x * normal_at(x)[0]


def gelu_gradient(otherwise: Callable[..., Tensor], gradient: Tensor, x: Tensor, approximate: str = "none") -> Tensor:
    """Return the gradient times Phi(x) + x phi(x). The graph shares the exponential with the forward pass."""
    if approximate != "none":
        return otherwise(gradient, x, approximate=approximate)
    below, e = normal_at(x)
    return gradient * (below + x * e * (2 * math.pi) ** -0.5)


def unwritten(size: list[int], *_: Any, dtype: torch.dtype | None = None, **__: Any) -> Tensor:
    """Return zeros for an uninitialised tensor, since arbitrary values would make the trace differ between processes."""
    return torch.zeros(size, dtype=dtype)


def copied(x: Tensor, y: Tensor, non_blocking: bool = False) -> Tensor:
    return y.to(x.dtype).expand(x.shape)


@cache
def own_decompositions() -> dict[Any, Callable[..., Any]]:
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
        aten.isnan.default: lambda x: x != x,
        aten.isinf.default: lambda x: x.abs() == math.inf,
        aten.logical_xor.default: lambda x, y: (x != 0) != (y != 0),
        aten.select_scatter.default: written_element,
        aten.as_strided.default: reshaped,
        aten.diagonal.default: diagonal,
        aten.diagonal_backward.default: diagonal_gradient,
    }


def reshaped(x: Tensor, size: list[int], stride: list[int], offset: int | None = None) -> Tensor:
    """Return `as_strided` where it is a reshape, as in norms of groups."""
    view = x.reshape(size) if math.prod(size) == x.numel() else x
    if offset is not None or not x.is_contiguous() or view.stride() != tuple(stride):
        raise Untraceable("a tensor that is changed through a view of it (aten.as_strided)")
    return view


def written_element(x: Tensor, y: Tensor, dim: int, index: int) -> Tensor:
    at = index % x.shape[dim]
    return torch.slice_scatter(x, y.unsqueeze(dim), dim, at, at + 1)


def largest(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the maximum and its index."""
    return x.amax(dim, keepdim), x.argmax(dim, keepdim)


def smallest(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return x.amin(dim, keepdim), (-x).argmax(dim, keepdim)


def place_of_smallest(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return (-x).argmax(dim, keepdim)


def round_half_to_even(x: Tensor) -> Tensor:
    below = torch.floor(x)
    fraction, odd = x - below, below - 2 * torch.floor(below * 0.5)
    return below + ((fraction > 0.5) | ((fraction == 0.5) & (odd == 1))).to(x.dtype)


def logarithm_to(base: float, x: Tensor) -> Tensor:
    """Return a logarithm that is exact at whole powers of the base, where steps of a quantiser lie."""
    logarithm = torch.log(x) / math.log(base)
    rounded = round_half_to_even(logarithm)
    return torch.where(torch.pow(base, rounded) == x, rounded, logarithm)


def diagonal(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    x = x.movedim((dim1, dim2), (-2, -1))
    rows, columns = x.shape[-2:]
    on, first, count = diagonal_places(rows, columns, offset)
    elements = torch.where(on, x, torch.zeros_like(x)).sum(-1)
    return elements[..., first : first + count]


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


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """Return operation -> decomposition: of PyTorch for most, and those of this file."""
    aten = torch.ops.aten
    table = dict(core_aten_decompositions())
    further = (
        *(aten._softmax, aten._log_softmax, aten.native_layer_norm, aten.native_layer_norm_backward, aten.var_mean),
        *(aten.var, aten.linalg_vector_norm, aten.silu, aten.sigmoid_backward),
        *(aten.tanh_backward, aten.embedding_dense_backward, aten.nll_loss_forward, aten.nll_loss_backward),
        *(aten.cumsum, aten.expm1, aten.log1p, aten.leaky_relu, aten.leaky_relu_backward),
        *(aten.hardtanh, aten.hardtanh_backward, aten.native_group_norm),
        *(aten.hardswish, aten.hardswish_backward, aten.hardsigmoid, aten.hardsigmoid_backward),
    )
    table.update(get_decompositions(further))
    table |= own_decompositions()
    table[aten.copy.default] = copied
    table |= dict.fromkeys((aten.empty.memory_format, aten.empty_permuted.default), unwritten)
    by_erf = get_decompositions([aten.gelu, aten.gelu_backward])
    for operation, formula in ((aten.gelu.default, gelu), (aten.gelu_backward.default, gelu_gradient)):
        table[operation] = partial(formula, by_erf[operation])
    for kept in (
        *(aten.sigmoid.default, aten.tanh.default, aten.index_put.default),
        *(aten.baddbmm.default, aten.addmm.default, aten.select_backward.default),
    ):
        table.pop(kept, None)
    return table
