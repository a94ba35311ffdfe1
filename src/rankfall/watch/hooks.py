"""Hooks that leave nothing behind: on modules only while a step is looked at, and not in copies or files of a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn
from torch.utils.hooks import RemovableHandle


class WatchHook:
    """Calls a function. A copy of the module it is on has a hook that does nothing, and so has one that was saved."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *given: Any) -> None:
        self.function(*given)

    def __deepcopy__(self, memo: Any) -> WatchHook:
        return WatchHook(do_nothing)

    def __reduce__(self) -> Any:
        return WatchHook, (do_nothing,)


def do_nothing(*given: Any) -> None:
    """The hook that a copy of a module has."""


class Attached:
    """Handles of hooks that are taken off together."""

    def __init__(self) -> None:
        self.handles: list[RemovableHandle] = []

    def __bool__(self) -> bool:
        return bool(self.handles)

    def around(self, module: nn.Module, before: Callable[..., None], after: Callable[..., None]) -> None:
        """`before(module, args, kwargs)` and `after(module, args, kwargs, output)`, which is called after an exception too, with None."""
        self.handles.append(module.register_forward_pre_hook(WatchHook(before), with_kwargs=True))
        self.handles.append(module.register_forward_hook(WatchHook(after), with_kwargs=True, always_call=True))

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()
        self.handles.clear()
