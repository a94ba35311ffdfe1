"""The steps of the optimiser that updates the watched model. PyTorch's global hooks report every step of every optimiser."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from torch import nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook


class OptimizerClock:
    """Call `before(optimizer)` and `after(optimizer)` around each step of the optimiser of one weight of the model.

    The weight belongs to the first optimiser that steps, so a model with two optimisers counts one step when both have stepped. If the
    weight leaves the model (a replaced module), the next optimiser of the model counts.
    """

    def __init__(
        self, model: nn.Module, before: Callable[[Optimizer], None], after: Callable[[Optimizer], None]
    ) -> None:
        self.model = weakref.ref(model)
        self.weight: Callable[[], Any] = lambda: None  # a weak reference
        self.before, self.after = weakref.WeakMethod(before), weakref.WeakMethod(after)
        self.handles = [
            register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: self.notify(self.before, optimizer)),
            register_optimizer_step_post_hook(lambda optimizer, args, kwargs: self.notify(self.after, optimizer)),
        ]

    def notify(self, reference: weakref.WeakMethod[Callable[[Optimizer], None]], optimizer: Optimizer) -> None:
        method = reference()
        if method is not None and self.counts(optimizer):
            method(optimizer)

    def counts(self, optimizer: Optimizer) -> bool:
        """Return whether steps of this optimiser are those of the model."""
        model, weight = self.model(), self.weight()
        if any(parameter is weight for group in optimizer.param_groups for parameter in group["params"]):
            return True
        inside = set() if model is None else {id(parameter) for parameter in model.parameters()}
        if id(weight) in inside:
            return False
        updated = (parameter for group in optimizer.param_groups for parameter in group["params"])
        chosen = next((parameter for parameter in updated if id(parameter) in inside), None)
        if chosen is not None:
            self.weight = weakref.ref(chosen)
        return chosen is not None

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()
        self.handles = []
