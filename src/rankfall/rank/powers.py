"""Matrices separated from their size, x = unit * 2^exponent, so that ratios do not depend on the limits of the number format.

Multiplication by a power of two is exact, so a ratio of units is that of the matrices, bit for bit. A matrix whose largest entry is
below `least` has lost digits, since it was computed from numbers rounded to the spacing of subnormal numbers. Its ratio is undefined:
NaN in tensors and null with a reason in tables. The same holds for a matrix of zeros, which may be the remainder of a small one. Equal
rows of an ordinary size have the residual 0.
"""

import torch
from torch import Tensor

BITS = {torch.float64: (torch.int64, 52, 1023), torch.float32: (torch.int32, 23, 127)}  # integers, fraction, bias
TOO_SMALL = "the number itself is beyond what float64 can hold"
NOT_FINITE = "the state has values that are not finite"


def power(exponent: Tensor, dtype: torch.dtype) -> Tensor:
    """Return 2^exponent, exactly, for exponents of normal numbers."""
    integers, fraction, bias = BITS[dtype]
    return ((exponent.to(integers) + bias) << fraction).view(dtype)


def shift(x: Tensor, exponent: Tensor) -> Tensor:
    """Return x * 2^exponent, exact unless the result leaves the normal range. The exponent has the shape of x or broadcasts with it."""
    most = BITS[x.dtype][2] - 1
    # Twice the largest power: beyond it every result is zero or infinite.
    exponent = exponent.clamp(-2 * most, 2 * most)
    half = exponent.div(2, rounding_mode="floor")
    return x * power(half, x.dtype) * power(exponent - half, x.dtype)


def exponent_of(x: Tensor, dim: int | tuple[int, ...] = (-2, -1), keepdim: bool = False) -> Tensor:
    """Return e (...) where the largest entry is in [2^(e - 1), 2^e); 0 for zeros and entries that are not finite."""
    size = x.abs() if dim == () else x.abs().amax(dim, keepdim=keepdim)  # amax over no axes would reduce all axes
    return torch.frexp(torch.where(size.isfinite(), size, 0.0))[1].long()


def unit(x: Tensor, dim: int | tuple[int, ...] = (-2, -1)) -> Tensor:
    """Return x (..., T, D) times the power of two that brings each matrix' largest entry to [1/2, 1)."""
    return shift(x, -exponent_of(x, dim, keepdim=True))


def length(x: Tensor, dim: int | tuple[int, ...] = -1) -> Tensor:
    """Return Euclidean norms over `dim` whose squares neither vanish nor overflow.

    They equal the ordinary norms bit for bit where those are sound.
    """
    return shift(torch.linalg.vector_norm(unit(x, dim), dim=dim), exponent_of(x, dim))


def least(dtype: torch.dtype) -> float:
    """Return the size from which on rounding to the spacing of subnormal numbers is at most eps^2 of an entry."""
    return torch.finfo(dtype).tiny / torch.finfo(dtype).eps


def measurable(x: Tensor, computed: torch.dtype | None = None) -> Tensor:
    """Check whether matrices (..., T, D) have ratios at all, (...).

    `computed`: the number format that they were computed in, by default their own.
    """
    size = x.abs().amax((-2, -1))
    return (size >= least(computed or x.dtype)) & size.isfinite()


def or_nan(ratio: Tensor, x: Tensor) -> Tensor:
    """Return ratios (...) of matrices (..., T, D), NaN where these have none."""
    return torch.where(measurable(x), ratio, torch.nan)


def outside(dtype: torch.dtype) -> str:
    """Return the reason why a finite state has no ratio."""
    named = str(dtype).removeprefix("torch.")
    return (
        f"the state, or one before it, is zero or leaves the range of {named}, where this is underflow and no collapse"
    )


def reason_of(x: Tensor, computed: torch.dtype | None = None, lost: Tensor | None = None) -> str:
    """Return the reason why some of the samples (B, T, D) have no ratio; empty if all have one. `lost` (B,): samples known to have none."""
    none = ~measurable(x, computed) if lost is None else lost | ~measurable(x, computed)
    if not bool(none.any()):
        return ""
    reason = outside(computed or x.dtype) if bool(x[none].isfinite().all()) else NOT_FINITE
    return reason if bool(none.all()) else f"{reason} (in {int(none.sum())} of {len(x)} samples)"
