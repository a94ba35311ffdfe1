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
            register_optimizer_step_pre_hook(lambda one, args, kwargs: self.tell(self.before, one)),
            register_optimizer_step_post_hook(lambda one, args, kwargs: self.tell(self.after, one)),
        ]

    def tell(self, who: weakref.WeakMethod[Callable[[Optimizer], None]], optimizer: Optimizer) -> None:
        method = who()
        if method is not None and self.counts(optimizer):
            method(optimizer)

    def counts(self, optimizer: Optimizer) -> bool:
        """Return whether steps of this optimiser are those of the model."""
        model, weight = self.model(), self.weight()
        if any(one is weight for group in optimizer.param_groups for one in group["params"]):
            return True
        inside = set() if model is None else {id(one) for one in model.parameters()}
        if id(weight) in inside:
            return False
        updated = (one for group in optimizer.param_groups for one in group["params"])
        found = next((one for one in updated if id(one) in inside), None)
        if found is not None:
            self.weight = weakref.ref(found)
        return found is not None

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()
        self.handles = []
