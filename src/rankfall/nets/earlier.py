"""Tensors (K, B, ...) that earlier layers of a pass store for later layers, in lists by name.

A block, an attention or a class of residuals that reads or stores tensors sets `asks_earlier = True`, and receives the lists as `earlier`.
These are empty when a pass begins, and nothing is kept between passes.
"""

from functools import partial
from typing import Any

from torch import Tensor

from rankfall.errors import RankfallError

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
