"""The few operations that handle the member axis K. Everything else in a network broadcasts over it."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Sizes:
    """The sizes from which components create their parameters."""

    members: int
    length: int  # tokens in a sequence, sentinels included
    depth: int
    width: int
    heads: int
    head_width: int
    mlp_width: int
    size_in: int  # vocabulary, or channels of a vector
    size_out: int  # classes, or channels of a value
    value_width: int | None = None  # width of a head's values if it differs from head_width
    layer: int = 0  # layer of the component, from 1 to depth; 0: shared or outside the layers


@dataclass(frozen=True)
class Initial:
    """The initial value of one member's part of a parameter: a constant, or a draw by the `init` component for its role."""

    role: str
    kind: str  # "weight" | "bias" | "constant"
    fan_in: int
    constant: float = 0.0
    deviation: float | None = None  # standard deviation of a normal draw, if the component sets it instead of `init`


def parameter(sizes: Sizes, *shape: int, initial: Initial) -> nn.Parameter:
    """Return a parameter (K, *shape) with its rule of initialisation."""
    value = nn.Parameter(torch.empty(sizes.members, *shape))
    value.initial = initial  # type: ignore[attr-defined]
    return value


def constant(sizes: Sizes, *shape: int, value: float) -> nn.Parameter:
    """Return a parameter (K, *shape) whose initial entries all have this value."""
    return parameter(sizes, *shape, initial=Initial("constant", "constant", 1, value))


class Linear(nn.Module):
    """The linear map y = x W + b, with one W and b for each member. Weights are (K, in, out), so that y = x @ W reads like the equation."""

    def __init__(
        self,
        sizes: Sizes,
        size_in: int,
        size_out: int,
        role: str,
        bias: bool = True,
        deviation: float | None = None,
    ) -> None:
        super().__init__()
        start = Initial(role, "weight", size_in, deviation=deviation)
        self.weight = parameter(sizes, size_in, size_out, initial=start)
        self.bias = parameter(sizes, 1, size_out, initial=Initial(role, "bias", size_in)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(x.shape[0], -1, x.shape[-1])  # (K, B*T, in)
        y = torch.bmm(flat, self.weight) if self.bias is None else torch.baddbmm(self.bias, flat, self.weight)
        return y.view(*x.shape[:-1], -1)  # (K, B, T, out)


class Lookup(nn.Module):
    """A lookup table (K, rows, D): member k looks up its tokens in its own rows."""

    def __init__(self, sizes: Sizes, rows: int, role: str) -> None:
        super().__init__()
        self.weight = parameter(sizes, rows, sizes.width, initial=Initial(role, "weight", sizes.width))

    def forward(self, index: Tensor) -> Tensor:
        members, rows, width = self.weight.shape
        offset = torch.arange(members, device=index.device).view(-1, *[1] * (index.dim() - 1)) * rows
        # One flat gather for all members; autograd then scatters each member's gradient into its own rows.
        return self.weight.reshape(members * rows, width)[index + offset]  # (K, B, T, D)
