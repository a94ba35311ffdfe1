"""A list of distinct ATen operations on numbered tensors. No operation changes a tensor or draws random numbers.

The inputs have the first numbers. Tensors that do not depend on inputs are computed immediately and are in `known`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor


class Untraceable(Exception):
    """The network, objective or optimiser cannot be traced; the message says why, and `place` where, if it is known."""

    place = ""


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to the tensor with this number, as an argument or a result."""

    number: int

    def __repr__(self) -> str:
        return f"%{self.number}"


@dataclass(frozen=True, eq=False, slots=True)
class Form:
    """The shape, strides and format of a tensor. There is one object for each form (`form`)."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    text: str

    def __repr__(self) -> str:
        return self.text


@cache
def form(shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> Form:
    return Form(shape, strides, dtype, f"{shape} {strides} {dtype}")


def form_of(x: Tensor) -> Form:
    return form(tuple(x.shape), x.stride(), x.dtype)


@dataclass(frozen=True, eq=False, slots=True)
class AtenOperation:
    target: Any
    args: tuple[Any, ...]  # with `Ref` for tensors, also within lists
    kwargs: dict[str, Any]
    result: Any  # a `Ref`, or a list or tuple of them
    inputs: tuple[int, ...]  # numbers of the tensors among the arguments
    outputs: tuple[int, ...]  # numbers of the tensors of the result


@dataclass(eq=False)
class AtenGraph:
    forms: list[Form] = field(default_factory=list)  # form of each tensor, by number
    known: dict[int, Tensor] = field(default_factory=dict)
    operations: list[AtenOperation] = field(default_factory=list)
    input_count: int = 0
    results: Any = ()
    equal: dict[tuple[Any, str], Any] = field(default_factory=dict)  # operation and arguments -> result
    places: dict[int, str] = field(default_factory=dict)  # tensor number -> file and line of the user's code, if noted

    def number(self, form: Form) -> Ref:
        self.forms.append(form)
        return Ref(len(self.forms) - 1)

    def keep(self, value: Tensor) -> Ref:
        """Add a constant tensor."""
        ref = self.number(form_of(value))
        self.known[ref.number] = value
        return ref

    def add(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], forms: Callable[[], Any]) -> Any:
        """Add an operation and return its result with `Ref` for tensors. `forms` returns the forms of a result that is not constant."""
        key = target, repr((args, kwargs))
        if key in self.equal:
            return self.equal[key]
        inputs = numbers_in((args, kwargs))
        if all(number in self.known for number in inputs):
            result = replace_in(target(*self.values(args), **self.values(kwargs)), Tensor, self.keep)
        else:
            result = replace_in(forms(), Form, self.number)
        self.operations.append(AtenOperation(target, args, kwargs, result, inputs, numbers_in(result)))
        self.equal[key] = result
        return result

    def values(self, x: Any) -> Any:
        return replace_in(x, Ref, lambda ref: self.known[ref.number])

    def form_in(self, x: Any) -> Any:
        return replace_in(x, Ref, lambda ref: self.forms[ref.number])

    def insert(self, other: "AtenGraph", inputs: Sequence[Ref]) -> Any:
        """Add the operations of another graph to tensors of this one, and return its results as tensors of this graph."""
        refs = dict(enumerate(inputs))
        computed = {number for operation in other.operations for number in operation.outputs}
        refs |= {number: self.keep(value) for number, value in other.known.items() if number not in computed}
        translate = lambda x: replace_in(x, Ref, lambda ref: refs[ref.number])  # noqa: E731
        for operation in other.operations:
            args, kwargs = translate((operation.args, operation.kwargs))
            result = self.add(operation.target, args, kwargs, partial(other.form_in, operation.result))
            refs.update(zip(operation.outputs, map(Ref, numbers_in(result)), strict=True))
        return translate(other.results)

    def needed(self) -> list[AtenOperation]:
        """Return the operations on which a result depends, in order."""
        wanted, operations = set(numbers_in(self.results)), []
        for operation in reversed(self.operations):
            if not wanted.isdisjoint(operation.outputs):
                operations.append(operation)
                wanted.update(operation.inputs)
        return operations[::-1]


def numbers_in(x: Any) -> tuple[int, ...]:
    """Return the numbers of the tensors in an argument, in order."""
    if isinstance(x, Ref):
        return (x.number,)
    if isinstance(x, dict):
        x = tuple(x.values())
    return tuple(number for item in x for number in numbers_in(item)) if isinstance(x, (list, tuple)) else ()


def replace_in(x: Any, kind: type, by: Callable[[Any], Any]) -> Any:
    """Return nested lists, tuples and dictionaries with each object of a kind replaced by `by(object)`."""
    if isinstance(x, kind):
        return by(x)
    if isinstance(x, (list, tuple)):
        items = [replace_in(item, kind, by) for item in x]
        return items if isinstance(x, list) else tuple(items)
    if isinstance(x, dict):
        return {name: replace_in(item, kind, by) for name, item in x.items()}
    return x
