"""Copies of users' functions and modules, so that measuring has no side effects: modules in float64 and evaluation mode, on the CPU.

A function that reaches modules by its closure, its defaults, its arguments (`functools.partial`) or its globals receives copies of them
too. The random state of Python, NumPy and torch is restored.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import nn

from rankfall.errors import RankfallError
from rankfall.streams.arguments import copy_code, copy_of

Function = Callable[..., Any]
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
