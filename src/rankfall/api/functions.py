"""Copies of users' functions and modules, so that measuring has no side effects: modules in float64 and evaluation mode, on the CPU.

A function that reaches modules by its closure, its defaults, its arguments (`functools.partial`) or its globals receives copies of them
too. The random state of Python, NumPy and torch is restored.

`Steady` calls such a copy. Its first call checks that the function is deterministic and computes in float64. If it requests float32 inside
(`x.float()`, `softmax(dtype=torch.float32)`), float64 is kept instead and a note says so, because exponents of float32 rounding would look
like a law. A cast that cannot be avoided raises an error.
"""

from __future__ import annotations

import copy
import functools
import inspect
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rankfall.errors import RankfallError
from rankfall.streams.arguments import Wide, copy_code, copy_of

DEPTH = 6
AS_ONE = "; each child of a Sequential is a layer: to measure it as one layer, give a list of it, [module]"


def functions_of(stack: Any, depth: int | None) -> tuple[list[Any], bool, str]:
    """Return the functions of a stack, whether they are children of a module, and a note if one module is repeated."""
    stack = original(stack)
    if isinstance(stack, nn.Sequential | nn.ModuleList):
        functions = list(children(stack))
    elif isinstance(stack, Sequence) and not isinstance(stack, str):
        functions = list(stack)
    else:
        count = DEPTH if depth is None else depth
        several = isinstance(stack, nn.Module) and count > 1
        note = f"{name(stack)} is applied {count} times, with the same weights" if several else ""
        return [stack] * count, False, note
    if not functions:
        raise RankfallError("an empty list has no layers: pass a function for each layer")
    if depth not in (None, len(functions)):
        raise RankfallError(f"depth is {depth}, but {len(functions)} layers are given: leave it out")
    return functions, isinstance(stack, nn.Module), ""


def children(module: Any) -> Iterator[Any]:
    """Yield the layers of a stack, including those of nested stacks."""
    for child in map(original, module):
        if isinstance(child, nn.Sequential | nn.ModuleList):
            yield from children(child)
        else:
            yield child


def original(function: Any) -> Any:
    """Return the function before `torch.compile`, whose signature can be read and which runs in any number format."""
    while True:
        inner = getattr(function, "_orig_mod", None) or getattr(function, "_torchdynamo_orig_callable", None)
        if inner is None:
            return function
        function = inner


def copy_function(function: Any) -> Any:
    """Return a function with copies of all modules that it reaches."""
    function = original(function)
    if isinstance(function, nn.Module):
        return copy_of(function, torch.float64)
    if inspect.ismethod(function):
        owner = copy_value(function.__self__)
        return function if owner is function.__self__ else types.MethodType(function.__func__, owner)
    if isinstance(function, functools.partial):
        named = {key: copy_value(value) for key, value in function.keywords.items()}
        return functools.partial(copy_function(function.func), *map(copy_value, function.args), **named)
    if isinstance(function, types.FunctionType):
        return copy_code(function, copy_value)
    return function


def copy_value(value: Any) -> Any:
    """Copy a module, or a list or tuple with modules; return any other value unchanged."""
    if isinstance(original(value), nn.Module):
        return copy_function(value)
    if type(value) in (list, tuple) and any(isinstance(original(item), nn.Module) for item in value):
        return type(value)(map(copy_value, value))
    return value


def name(function: Any) -> str:
    """Return the name of a function, or the class of an object without a name."""
    return getattr(function, "__name__", type(function).__name__)


KEPT = "asks for float32 inside; float64 was kept instead"


class Steady:
    """A function that works on copies of its modules. Its first call checks that results repeat, also after other inputs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.checked, self.__name__, self.note = copy_function(function), False, name(function), ""
        self.within: Callable[[], AbstractContextManager[Any]] = nullcontext

    def __call__(self, *inputs: Tensor) -> Any:
        if not self.checked:
            self.checked = True
            self.check(inputs)
        return self.run(self.function, inputs)

    def run(self, function: Callable[..., Any], inputs: tuple[Tensor, ...]) -> Any:
        """Call a function with copies of the inputs, which it may edit."""
        with self.within():
            return function(*(x.clone(memory_format=torch.contiguous_format) for x in inputs))

    def check(self, inputs: tuple[Tensor, ...]) -> None:
        """Raise an error if the function rounds to a narrower format or gives two results for one input."""
        fresh = copy.deepcopy(self.function) if isinstance(self.function, nn.Module) else self.function
        cast = self.casts(inputs)
        if cast:
            self.within, self.note = Wide, f"{self.__name__} {KEPT}"
            try:
                wide = self.casts(inputs)
            except RuntimeError:  # its own float32 numbers meet float64
                wide = cast
            if wide:
                raise RankfallError(self.refusal(wide))
        others = tuple(x.flip(-1) / 3 for x in inputs)  # not representable in float32
        first, elsewhere = self.run(self.function, inputs), self.run(self.function, others)
        again = self.run(self.function, inputs)
        kept = isinstance(first, Tensor) and first is elsewhere  # the same object for any input
        if kept or not (same(first, again) and same(elsewhere, self.run(fresh, others))):
            raise RankfallError(
                f"{self.__name__} gives two answers for the same input: is it in training mode, with dropout (module.eval()), "
                "or does it keep state between calls?"
            )
        if is_rounded(elsewhere):
            raise RankfallError(self.refusal("float32"))

    def refusal(self, cast: str) -> str:
        """Return the message for a cast to a narrower format that cannot be avoided."""
        return (
            f"{self.__name__} casts its input from float64 to {cast} inside, so small residuals would be rounding: compute in the type of "
            "the input"
        )

    def casts(self, inputs: tuple[Tensor, ...]) -> str:
        """Return the narrower format to which the function casts states, or an empty string."""
        clones = tuple(x.clone(memory_format=torch.contiguous_format) for x in inputs)
        with self.within(), Casts(clones) as casts:
            self.function(*clones)
        return casts.narrow


class Casts(TorchDispatchMode):
    """A dispatch mode that detects operations which cast float64 numbers that depend on the input to a narrower format."""

    def __init__(self, inputs: tuple[Tensor, ...]) -> None:
        super().__init__()
        self.depends = {id(tensor): weakref.ref(tensor) for tensor in inputs}
        self.narrow = ""  # name of the first narrower format

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        read = [tensor for tensor in tree_leaves((args, kwargs)) if isinstance(tensor, Tensor) and self.follows(tensor)]
        results = [tensor for tensor in tree_leaves(output) if isinstance(tensor, Tensor)] if read else []
        for tensor in results:
            self.depends[id(tensor)] = weakref.ref(tensor)
            is_narrow = tensor.is_floating_point() and tensor.dtype.itemsize < torch.float64.itemsize
            if is_narrow and any(source.dtype == torch.float64 for source in read):
                self.narrow = self.narrow or str(tensor.dtype).removeprefix("torch.")
        return output

    def follows(self, tensor: Tensor) -> bool:
        """Return whether a tensor depends on the input."""
        known = self.depends.get(id(tensor))
        return known is not None and known() is tensor


def is_rounded(output: Any) -> bool:
    """Return whether float64 numbers have only the digits of float32, as when they were computed outside of torch, for example in NumPy."""
    output = output[0] if isinstance(output, tuple) and output else output
    if not isinstance(output, Tensor) or output.dtype != torch.float64 or not output.numel():
        return False
    fewer = (output == output.bfloat16().double()).double().mean()
    return bool((output == output.float().double()).all()) and bool(fewer < 0.5)


def same(first: Any, second: Any) -> bool:
    """Return whether two outputs are equal except for rounding. Outputs other than tensors count as equal; `call` rejects them."""
    first, second = (output[0] if isinstance(output, tuple) and output else output for output in (first, second))
    if not (isinstance(first, Tensor) and isinstance(second, Tensor)):
        return True
    if first.shape != second.shape or not first.numel():
        return first.shape == second.shape
    size = float(first.abs().nan_to_num().max())
    return torch.allclose(first, second, rtol=0.0, atol=1e-9 * size, equal_nan=True)
