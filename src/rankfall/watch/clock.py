"""The steps of the optimiser that updates the watched model. PyTorch's global hooks report every step of every optimiser."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from torch import nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook


class OptimizerClock:
    """Calls `before(optimizer)` and `after(optimizer)` around each step of the optimiser of one weight of the model.

    The weight belongs to the first optimiser that steps, so a model with two optimisers counts one step when both have stepped.
    """

    def __init__(
        self, model: nn.Module, before: Callable[[Optimizer], None], after: Callable[[Optimizer], None]
    ) -> None:
        self.weights = {id(weight) for weight in model.parameters()}
        self.marker: weakref.ref[Any] | None = None  # the weight
        self.before, self.after = weakref.WeakMethod(before), weakref.WeakMethod(after)
        self.handles = [
            register_optimizer_step_pre_hook(lambda one, args, kwargs: self.tell(self.before, one)),
            register_optimizer_step_post_hook(lambda one, args, kwargs: self.tell(self.after, one)),
        ]

    def tell(self, who: weakref.WeakMethod[Callable[[Optimizer], None]], optimizer: Optimizer) -> None:
        weights = (weight for group in optimizer.param_groups for weight in group["params"])
        if self.marker is None:
            found = next((weight for weight in weights if id(weight) in self.weights), None)
            if found is None:
                return
            self.marker = weakref.ref(found)
        elif not any(weight is self.marker() for weight in weights):
            return
        method = who()
        if method is not None:
            method(optimizer)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()
        self.handles = []
