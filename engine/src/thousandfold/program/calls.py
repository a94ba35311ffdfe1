"""Calls of ATen operations, and the functions that lower them to nodes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from thousandfold.graph import Form
from thousandfold.program.atoms import Shape
from thousandfold.program.draft import ProgramDraft


@dataclass(frozen=True)
class AtenCall:
    name: str  # without namespace and overload
    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    value: Any  # form of the result, or a list or tuple of forms
    dtypes: tuple[torch.dtype, ...]  # dtypes of the input tensors

    @property
    def shape(self) -> Shape:
        return tuple(self.value.shape)

    def arg(self, i: int, default: Any = None) -> Any:
        """Return a positional argument, or the default if it is missing or None."""
        given = self.args[i] if len(self.args) > i else None
        return default if given is None else given

    @property
    def is_bool(self) -> bool:
        return isinstance(self.value, Form) and self.value.dtype == torch.bool


Lowering = Callable[[ProgramDraft, AtenCall], Any]  # returns the result as View or Full
LOWERINGS: dict[str, Lowering] = {}


def lowers(*names: str) -> Callable[[Lowering], Lowering]:
    """Register a function as the lowering of the operations with these names."""

    def mark(function: Lowering) -> Lowering:
        LOWERINGS.update(dict.fromkeys(names, function))
        return function

    return mark
