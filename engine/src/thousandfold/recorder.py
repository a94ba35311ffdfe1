"""Record the ATen operations of a function that runs on tensors without values.

A composite operation is traced once for each form of its arguments, and its parts are inserted at each call.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from thousandfold.decompositions import decompositions, own_decompositions
from thousandfold.graph import AtenGraph, Form, Ref, Untraceable, form_of, numbers_in, replace_in

NOTES: list[bool] = []  # not empty while places are noted
LIBRARIES = (os.path.dirname(__file__) + os.sep, os.path.dirname(torch.__file__) + os.sep)
KEPT = 4096  # largest size of each cache below; networks with the same forms share entries
RESULTS: dict[tuple[Any, str], Any] = {}  # operation and forms of its arguments -> forms of its result
PARTS: dict[tuple[Any, str], AtenGraph] = {}  # operation and forms of its arguments -> its parts
CPU = torch.device("cpu")
CONSTANTS = Tensor, nn.Parameter  # kinds of tensors that a module may hold


class Numberless(Tensor):
    """A tensor of a graph. It has a form, and no values that a function could read."""

    ref: Ref
    recorder: "AtenRecorder"
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> NoReturn:  # type: ignore[override]
        raise Untraceable(f"{func} outside of the trace")


class DispatchRecorder(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False, because nothing here is compiled. Otherwise torch would import its compiler, which takes a second."""
        return False


class AtenRecorder(DispatchRecorder):
    def __init__(self) -> None:
        super().__init__()
        self.graph = AtenGraph()
        self.constants: dict[int, tuple[Tensor, Ref]] = {}  # by id; the reference keeps the id from being reused

    def run(self, function: Callable[..., Any], *inputs: Any, **named: Any) -> AtenGraph:
        """Return the graph of `function`. Each form among the arguments becomes a tensor."""
        args, kwargs = replace_in((inputs, named), Form, lambda form: self.tensor(self.graph.number(form)))
        self.graph.input_count = len(self.graph.forms)
        with self:
            self.graph.results = self.refs(function(*args, **kwargs))
        return self.graph

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        before = len(self.graph.operations)
        result = self.record(func, args, kwargs)
        if NOTES and len(self.graph.operations) > before:
            place = place_of_user()
            for operation in self.graph.operations[before:]:
                self.graph.places.update(dict.fromkeys(operation.outputs, place))
        return result

    def record(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func is torch.ops.prim.device.default:
            return args[0].device
        args, kwargs = self.refs(args), self.refs(kwargs or {})
        numbers = numbers_in((args, kwargs))
        is_known = all(number in self.graph.known for number in numbers)
        decomposition = None if is_known and func in own_decompositions() else decomposition_of(func)
        if decomposition is not None and is_known:  # it may depend on values
            with self:
                return decomposition(*self.tensors(args), **self.tensors(kwargs))
        if decomposition is not None:
            return self.tensors(
                self.graph.insert(self.parts(func, decomposition, args, kwargs), list(map(Ref, numbers)))
            )
        if torch.Tag.data_dependent_output in func.tags and is_known:
            return func(*self.graph.values(args))
        check(func)
        return self.tensors(self.graph.add(func, args, kwargs, partial(self.forms, func, args, kwargs)))

    def parts(
        self, func: Any, decomposition: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> AtenGraph:
        """Return the graph of a composite operation."""
        args, kwargs = self.graph.form_in((args, kwargs))
        key = func, repr((args, kwargs))
        if key not in PARTS:
            make_room(PARTS)
            PARTS[key] = AtenRecorder().run(decomposition, *args, **kwargs)
        return PARTS[key]

    def refs(self, x: Any) -> Any:
        return replace_in(x, Tensor, self.ref)

    def ref(self, x: Tensor) -> Ref:
        if isinstance(x, Numberless):
            assert x.recorder is self
            return x.ref
        if type(x) not in CONSTANTS:
            raise Untraceable(f"a tensor of the kind {type(x).__name__}")
        if id(x) not in self.constants:
            self.constants[id(x)] = x, self.graph.keep(x)
        return self.constants[id(x)][1]

    def tensors(self, x: Any) -> Any:
        return replace_in(x, Ref, self.tensor)

    def tensor(self, ref: Ref) -> Numberless:
        form = self.graph.forms[ref.number]
        sizes: dict[str, Any] = {"strides": form.strides, "dtype": form.dtype, "device": CPU}
        tensor: Numberless = Tensor._make_wrapper_subclass(Numberless, form.shape, **sizes)
        tensor.ref, tensor.recorder = ref, self
        return tensor

    def forms(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the forms of an operation's result."""
        arguments = self.graph.form_in((args, kwargs))
        key = func, repr(arguments)
        if key not in RESULTS:
            positional, named = replace_in(arguments, Form, empty)
            if "device" in named:
                named["device"] = torch.device("meta")
            make_room(RESULTS)
            try:
                RESULTS[key] = replace_in(func(*positional, **named), Tensor, form_of)
            except Exception as error:
                if torch.Tag.dynamic_output_shape in func.tags:
                    raise Untraceable(f"a size depends on numbers of the data ({func})") from error
                raise
        return RESULTS[key]


@contextmanager
def noting_places() -> Iterator[None]:
    """Note for each operation the line of the user's code from which it comes. Otherwise a trace would take half as long again."""
    NOTES.append(True)
    try:
        yield
    finally:
        NOTES.pop()


def place_of_user() -> str:
    """Return file and line of the innermost frame of the user's code, or an empty text."""
    frame = sys._getframe(1)
    while frame is not None:
        if is_of_user(frame.f_code.co_filename):
            return f"{frame.f_code.co_filename}, line {frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""


@cache
def is_of_user(file: str) -> bool:
    return os.path.exists(file) and not file.startswith(LIBRARIES)


def empty(form: Form) -> Tensor:
    return torch.empty_strided(form.shape, form.strides, dtype=form.dtype, device="meta")


def check(func: Any) -> None:
    """Raise if an operation depends on more than its arguments, on their values, or changes a tensor."""
    if not isinstance(func, torch._ops.OpOverload):
        raise Untraceable(f"the operation {func}")
    if torch.Tag.data_dependent_output in func.tags:
        raise Untraceable(f"what it computes depends on numbers of the data ({func})")
    if torch.Tag.nondeterministic_seeded in func.tags:
        raise Untraceable(f"random numbers of torch ({func}) are drawn within the step")
    if func._schema.is_mutable:
        raise Untraceable(f"it changes a tensor that it holds ({func})")


@cache
def decomposition_of(func: Any) -> Callable[..., Any] | None:
    """Return the decomposition of an operation, or None if it has none."""
    if not isinstance(func, torch._ops.OpOverload):
        return None
    has_kernel = partial(torch._C._dispatch_has_kernel_for_dispatch_key, func.name())
    by_autograd = has_kernel("CompositeImplicitAutograd") and not has_kernel("CPU")
    return decompositions().get(func) or (func.decompose if by_autograd else None)


def make_room(kept: dict[Any, Any]) -> None:
    if len(kept) >= KEPT:
        kept.clear()
