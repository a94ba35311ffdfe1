"""An attention built with a position, a normaliser and a mask that note which of their methods it calls."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.nets.dropout import no_dropout
from rankfall.nets.earlier import asks
from rankfall.nets.positions._base import Position
from rankfall.nets.primitives import Sizes

MEMBERS, SAMPLES, TOKENS = 2, 2, 6
LAYERS = (1, 2)  # of two: what a component does may differ from layer to layer
SIZES = Sizes(
    members=MEMBERS, length=TOKENS, depth=2, width=8, heads=2, head_width=4, mlp_width=16, size_in=5, size_out=3, layer=1
)  # fmt: skip


def note_calls(attention: Any, layer: int, called: set[str], options: Mapping[str, Any]) -> Any:
    """Build an attention, call it once, and add to `called` the names of what it reads. Return it."""

    class NotedSizes(Sizes):
        def __getattribute__(self, name: str) -> Any:
            called.add(name)
            return super().__getattribute__(name)

    sizes: Sizes = NotedSizes(**{**vars(SIZES), "layer": layer})
    if hasattr(attention, "sized"):
        sizes = attention.sized(sizes, **options)
    net = attention(sizes, NotedPosition(called), NotedNormaliser(called), NotedMask(called), "blocks.0", **options)
    x = random_states(net)
    with torch.no_grad():
        net(x, no_dropout, **earlier_of(net))
        if hasattr(net, "weights"):
            net.weights(x)
    return net


class NotedPosition(Position):
    def __init__(self, called: set[str]) -> None:
        super().__init__()
        self.called = called

    def rotate(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        self.called.add("rotate")
        return super().rotate(q, k)

    def products(self, q: Tensor, k: Tensor) -> Tensor:
        self.called.add("products")
        return super().products(q, k)

    def bias(self, logits: Tensor) -> Tensor:
        self.called.add("bias")
        return super().bias(logits)

    def context(self, weights: Tensor, values: Tensor) -> Tensor:
        self.called.add("context")
        return super().context(weights, values)


class NotedNormaliser:
    def __init__(self, called: set[str]) -> None:
        self.called = called

    def prepare(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        self.called |= {"prepare", "normaliser"}
        return q, k

    def __call__(self, logits: Tensor) -> Tensor:
        self.called.add("normaliser")
        return logits.softmax(-1)


class NotedMask:
    def __init__(self, called: set[str]) -> None:
        self.called = called

    def __call__(self, length: int, device: torch.device) -> Tensor | None:
        self.called.add("mask")
        return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def fill(made: Any) -> Tensor:
    """Give a module random parameters in float64, and return states (K, B, T, D) of zeros for it."""
    if isinstance(made, nn.Module):
        made.double()
        source = torch.Generator().manual_seed(0)
        for value in made.parameters():
            value.data.normal_(0.0, 0.3, generator=source)
    return torch.zeros(MEMBERS, SAMPLES, TOKENS, SIZES.width, dtype=torch.float64)


def random_states(made: Any) -> Tensor:
    """Give a module random parameters, and return normal states (K, B, T, D)."""
    return fill(made).normal_(generator=torch.Generator().manual_seed(1))


def earlier_of(made: Any) -> dict[str, Any]:
    return {"earlier": {}} if asks(made) else {}
