"""A call of an ATen operation, and which function writes its nodes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from rankfall.train.machine.graph import Form
from rankfall.train.machine.program.atoms import Shape
from rankfall.train.machine.program.draft import ProgramDraft


@dataclass(frozen=True)
class AtenCall:
    name: str  # without namespace and overload
    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    value: Any  # the form of what it gives, or a list or tuple of forms
    dtypes: tuple[torch.dtype, ...]  # of the tensors that it is given

    @property
    def shape(self) -> Shape:
        return tuple(self.value.shape)

    def arg(self, i: int, default: Any = None) -> Any:
        """A positional argument, or what stands for one that is not given or None."""
        given = self.args[i] if len(self.args) > i else None
        return default if given is None else given

    @property
    def is_bool(self) -> bool:
        return isinstance(self.value, Form) and self.value.dtype == torch.bool


Lowering = Callable[[ProgramDraft, AtenCall], Any]  # gives the View or Full of the result
LOWERINGS: dict[str, Lowering] = {}


def lowers(*names: str) -> Callable[[Lowering], Lowering]:
    """Marks a function as that which writes the nodes of operations of these names."""

    def mark(function: Lowering) -> Lowering:
        LOWERINGS.update(dict.fromkeys(names, function))
        return function

    return mark
