"""A tensor times e^log: full relative precision at any scale, from 1e-100000 to 1e100000."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Scaled:
    """The value unit * e^log, with one scale for each member and sample. Zero has log -inf."""

    unit: Tensor  # (K, B, ...)
    log: Tensor  # (K, B)

    @property
    def scale(self) -> Tensor:
        """e^log, shaped to multiply `unit`. It may underflow to zero, which is harmless in a sum with a number of order one."""
        return spread(self.log, self.unit).exp()

    def value(self) -> Tensor:
        return self.unit * self.scale

    def map(self, unit: Tensor) -> "Scaled":
        """Return another tensor at the same scale."""
        return normal(unit, self.log)

    def divide_by(self, other: Tensor) -> "Scaled":
        return self.map(self.unit / other)


def normal(unit: Tensor, log: Tensor) -> Scaled:
    """Return the value unit * e^log, scaled so that the largest entry of `unit` is one."""
    size = unit.abs().flatten(2).amax(2)  # (K, B)
    nonzero = size > 0
    safe = torch.where(nonzero, size, torch.ones_like(size))
    return Scaled(unit / spread(safe, unit), torch.where(nonzero, log + safe.log(), -torch.inf))


def plain(value: Tensor) -> Scaled:
    """Convert an ordinary tensor (K, B, ...)."""
    return normal(value, value.new_zeros(value.shape[:2]))


def add(*terms: Scaled) -> Scaled:
    """Return the sum. As in any floating-point sum, terms far smaller than the largest are lost."""
    top = torch.stack([term.log for term in terms]).amax(0)  # (K, B)
    finite = torch.where(top.isfinite(), top, torch.zeros_like(top))
    total = sum(term.unit * spread((term.log - finite).exp(), term.unit) for term in terms)
    assert isinstance(total, Tensor)
    return normal(total, top)


def times(first: Scaled, second: Scaled) -> Scaled:
    return normal(first.unit * second.unit, first.log + second.log)


def expm1(x: Scaled) -> Scaled:
    """Return e^x - 1, as a multiple of the scale of x."""
    scale = x.scale
    small = scale < 1e-20  # there e^x - 1 = x to the last digit, while x itself may not be representable
    safe = torch.where(small, torch.ones_like(scale), scale)
    return x.map(torch.where(small, x.unit, torch.expm1(safe * x.unit) / safe))


def where(condition: Tensor, first: Scaled, second: Scaled) -> Scaled:
    """Return `first` where the condition (K, B) holds, else `second`."""
    unit = torch.where(spread(condition, first.unit), first.unit, second.unit)
    return Scaled(unit, torch.where(condition, first.log, second.log))


def spread(x: Tensor, like: Tensor) -> Tensor:
    """Reshape (K, B) to (K, B, 1, ...) with as many dimensions as `like`."""
    return x.reshape(*x.shape, *[1] * (like.dim() - x.dim()))
