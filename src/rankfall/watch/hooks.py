"""Hooks that leave no trace: modules have them only during a measured step, and in copied and saved modules they do nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
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
