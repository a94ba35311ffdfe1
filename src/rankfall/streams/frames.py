"""The module calls in progress during a forward pass, tracked by hooks, and names for operations.

The name of an operation is its module call and its number among the operations of its kind in that call, not counting
those of submodules. This name is the same in every forward pass, even if a submodule (such as a mixture of experts)
does a different number of operations each time. It differs between the calls of a module that is used several times
(ALBERT's layer).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

import torch
from torch import nn

from rankfall.streams.names import inner_modules


class Call(NamedTuple):
    """One call of one module in a forward pass: its dotted name and the number of earlier calls."""

    module: str
    number: int

    def __str__(self) -> str:
        return f"{self.module or '(model)'}" + (f" (call {self.number})" if self.number else "")


class Operation(NamedTuple):
    """The name of an operation: its module call, its kind, and its number among the operations of this kind in this call."""

    call: Call
    kind: str
    ordinal: int


class Frames:
    """Context manager around forward passes of one model. `on_exit(call, inputs, output)` may replace what a module call returns."""

    def __init__(self, model: nn.Module, on_exit: Callable[[Call, Any, Any], Any] | None = None) -> None:
        self.model, self.on_exit = model, on_exit
        self.counts: dict[Call, Counter[str]] = {}  # operations of each call, by kind
        self._stack: list[Call] = []
        self._calls: Counter[str] = Counter()
        self._hooks = ExitStack()

    def __enter__(self) -> Frames:
        for name, module in inner_modules(self.model):
            self._hooks.enter_context(module.register_forward_pre_hook(self._entering(name), prepend=True))
            self._hooks.enter_context(module.register_forward_hook(self._leaving, always_call=True))
        return self

    def __exit__(self, *error: object) -> None:
        self._hooks.close()
        self._stack.clear()
        self.on_exit = None  # a reference cycle would keep the model in memory

    def _entering(self, name: str) -> Callable[..., None]:
        def enter(module: nn.Module, inputs: Any) -> None:
            if not torch.compiler.is_compiling():  # compiled code does not run hooks
                self.resume(name)

        return enter

    def _leaving(self, module: nn.Module, inputs: Any, output: Any) -> Any:
        if torch.compiler.is_compiling() or not self._stack:  # the call began before the hooks, or ends after them
            return None
        call = self._stack.pop()
        return self.on_exit(call, inputs, output) if self.on_exit is not None else None

    def resume(self, name: str) -> None:
        """Enter a call of a module, which may have begun before the hooks."""
        call = Call(name, self._calls[name])
        self.counts[call] = Counter()
        self._stack.append(call)
        self._calls[name] += 1

    @property
    def stack(self) -> tuple[Call, ...]:
        """Calls in progress, outermost first."""
        return tuple(self._stack)

    def operation(self, kind: str) -> Operation | None:
        """Return the name of the operation that is starting, or None outside the model. Every call counts one operation."""
        if not self._stack:
            return None
        call = self._stack[-1]
        self.counts[call][kind] += 1
        return Operation(call, kind, self.counts[call][kind] - 1)
