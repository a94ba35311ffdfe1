"""Scaled tensors, unit * e^log, and split states, X = 1 x^T + R with such an R.

A scaled tensor has full relative precision at any scale, from 1e-100000 to 1e100000. In a split state, x is the row that all tokens share.
The rows of sentinels are kept separately: a sentinel's row differs from x by more than R, so it is not part of the split.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rankfall.nets.network import Network


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


@dataclass(frozen=True)
class State:
    common: Tensor  # x (K, B, 1, D)
    rest: Scaled  # R (K, B, T, D); its columns have mean zero
    sentinels: Tensor  # (K, B, S, D)
    tokens: Tensor  # (T,) positions of the tokens in the full sequence of S + T
    others: Tensor  # (S,) positions of the sentinels

    def full(self) -> Tensor:
        """Return X (K, B, S + T, D) as an ordinary tensor, which is exact unless R is far smaller than x."""
        return self.assemble(self.common + self.rest.value(), self.sentinels)

    def assemble(self, tokens: Tensor, sentinels: Tensor) -> Tensor:
        """Merge rows of tokens and sentinels in the order of the sequence; (K, B, H, T, d) works as well."""
        if not len(self.others):
            return tokens
        shape = list(tokens.shape)
        shape[-2] = len(self.tokens) + len(self.others)
        x = tokens.new_empty(shape)
        x[..., self.tokens, :] = tokens
        x[..., self.others, :] = sentinels
        return x

    def advance(self, full: Tensor, rest: Scaled) -> "State":
        """Return the state after a step: x and the sentinels are those of the full output, from the ordinary computation; R is `rest`."""
        common = full[..., self.tokens, :].mean(-2, keepdim=True)
        return replace(self, common=common, rest=centre(rest), sentinels=full[..., self.others, :])


def member(weight: Tensor) -> Tensor:
    """Reshape (K, in, out) to (K, 1, in, out), to multiply (K, B, T, in)."""
    return weight.unsqueeze(1)


def centre(rest: Scaled) -> Scaled:
    """Return R minus its column means."""
    return normal(rest.unit - rest.unit.mean(-2, keepdim=True), rest.log)


def begin(network: Network, x: Tensor) -> State:
    """Split the state of an embedded batch (K, B, S + T, D)."""
    tokens = torch.arange(x.shape[2], device=x.device)
    if network.sentinels is not None:
        tokens = network.sentinels.strip(tokens.view(1, 1, -1, 1)).flatten()
    others = torch.tensor([i for i in range(x.shape[2]) if i not in set(tokens.tolist())], dtype=torch.long)
    content = x[..., tokens, :]
    common = content.mean(-2, keepdim=True)
    return State(common, centre(plain(content - common)), x[..., others, :], tokens, others.to(x.device))


def rescale(state: State, log: Tensor) -> State:
    """Return the state with R at another scale. `log` is its natural logarithm, (K, B) or with fewer axes."""
    return replace(state, rest=Scaled(state.rest.unit, log.expand_as(state.rest.log)))
