"""Hooks that leave no trace: modules have them only during a measured step, and in copied and saved modules they do nothing.

PyTorch's global hooks report every step of every optimiser. `OptimizerClock` picks those of the optimiser that updates the watched model.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.hooks import RemovableHandle

from rankfall.errors import RankfallError
from rankfall.watch.compiled import TRACING


class WatchHook:
    """A hook that calls a function. In a copied or saved module it does nothing."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *arguments: Any) -> None:
        if torch.compiler.is_compiling():  # the model is compiled, which its modules do not show
            TRACING.met = True
        else:
            self.function(*arguments)

    def __deepcopy__(self, memo: Any) -> WatchHook:
        return WatchHook(do_nothing)

    def __reduce__(self) -> Any:
        return WatchHook, (do_nothing,)


def do_nothing(*arguments: Any) -> None:
    """Do nothing: the hook in a copied or saved module."""


class Attached:
    """Handles of hooks that are removed together."""

    def __init__(self) -> None:
        self.handles: list[RemovableHandle] = []

    def __bool__(self) -> bool:
        return bool(self.handles)

    def around(self, module: nn.Module, before: Callable[..., None], after: Callable[..., None]) -> None:
        """Attach `before(module, args, kwargs)` and `after(module, args, kwargs, output)`. After an exception the output is None."""
        self.handles.append(module.register_forward_pre_hook(WatchHook(before), with_kwargs=True))
        self.handles.append(module.register_forward_hook(WatchHook(after), with_kwargs=True, always_call=True))

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()
        self.handles.clear()


def guarded(function: Callable[..., None], give_up: Callable[[], None]) -> Callable[..., None]:
    """Wrap a hook so that it does nothing in a backward pass, where calls are computed again.

    A `RankfallError` of the hook removes all hooks, so that code that catches the error continues without the watcher.
    """

    def try_hook(*arguments: Any) -> None:
        if torch._C._current_graph_task_id() != -1:
            return
        try:
            function(*arguments)
        except RankfallError:
            give_up()
            raise

    return try_hook


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
