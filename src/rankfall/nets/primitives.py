"""What components of networks share: parameters with the member axis K, over which everything else broadcasts, dropout, and earlier layers.

Dropout is a function of the activation and of the name of its site in the network.

A block, an attention or a class of residuals that reads tensors (K, B, ...) of earlier layers, or stores some for later layers, sets
`asks_earlier = True`, and receives them as `earlier`, in lists by name. These are empty when a pass begins, and nothing is kept between
passes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.errors import RankfallError


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


Dropout = Callable[[Tensor, str], Tensor]


def no_dropout(x: Tensor, site: str) -> Tensor:
    return x


Earlier = dict[str, list[Tensor]]


def asks(part: Any) -> bool:
    """Return whether a part reads or stores tensors of the pass."""
    return bool(getattr(part, "asks_earlier", False))


def bind_earlier(part: Any, earlier: Earlier | None) -> Any:
    """Return the part with `earlier` bound if it asks for it."""
    return partial(part, earlier=require_earlier(part, earlier)) if asks(part) else part


def require_earlier(part: Any, earlier: Earlier | None) -> Earlier:
    """Return the tensors of the pass. Raise an error if a single layer is computed, which has none."""
    if earlier is None:
        raise RankfallError(
            f"{type(part).__name__} reads tensors of earlier layers, which a single layer lacks: run the whole network, or its `maps()`"
        )
    return earlier


class OfPass:
    """A block in one pass. It can be called only once, since it stores tensors of its input state."""

    def __init__(self, block: Any, earlier: Earlier) -> None:
        self.block, self.earlier, self.done = block, earlier, False

    def __call__(self, x: Tensor, *drop: Any) -> Tensor:
        if self.done:
            raise RankfallError("a layer that reads tensors of earlier layers can be computed only once in a pass")
        self.done = True
        return self.block(x, *drop, earlier=self.earlier)
