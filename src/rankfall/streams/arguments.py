"""A module and its example inputs, prepared for measures: a copy in evaluation mode on the CPU, and the arguments of a call.

Models that ask for float32 inside (softmax, RMSNorm) would round a float64 pass to float32. While `Wide` is active, requests to
convert a float64 tensor to float32 are ignored, and an einsum of mixed formats is computed in float64.
"""

from __future__ import annotations

import copy
import inspect
import random
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from rankfall.errors import RankfallError, describe_error
from rankfall.streams.names import unwrap
from rankfall.streams.record import map_tensors, tensors_in

PASS = "pass an example of its inputs: a tensor, a tuple of arguments, or a dict of keyword arguments"


class NoStream(RankfallError):
    """An error for a module without a residual stream, or without one that has the expected layers."""


class ChangesWidth(RankfallError):
    """An error for a stream that changes its width on the way, as in a pyramid. `layers` are those of one width."""

    def __init__(self, line: str, layers: Sequence[str]) -> None:
        super().__init__(line)
        self.layers = tuple(layers)


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def tensors(self) -> list[Tensor]:
        return [tensor for _, tensor in tensors_in((self.args, self.kwargs))]

    def map(self, change: Callable[[Tensor], Any]) -> Arguments:
        """Return the arguments with every tensor changed."""
        return Arguments(*map_tensors((self.args, self.kwargs), change))

    def show_shapes(self) -> str:
        """Return dtypes and shapes in one line, for errors."""
        shown = [f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}" for tensor in self.tensors()]
        return ", ".join(shown) or "no tensor"


def arguments_of(inputs: Any) -> Arguments:
    """Convert a tensor, a tuple or list of arguments, or a dict of keyword arguments to the arguments of a call."""
    if isinstance(inputs, Arguments):
        arguments = inputs
    elif isinstance(inputs, Tensor):
        arguments = Arguments((inputs,), {})
    elif isinstance(inputs, Mapping):
        arguments = Arguments((), dict(inputs))
    elif isinstance(inputs, Sequence) and not isinstance(inputs, str):
        arguments = Arguments(tuple(inputs), {})
    else:
        raise RankfallError(f"inputs is {'not given' if inputs is None else type(inputs).__name__}: {PASS}")
    tensors = arguments.tensors()
    if not tensors:
        raise RankfallError(f"inputs contains no tensor: {PASS}")
    for tensor in tensors:
        if tensor.device.type == "meta":
            raise RankfallError(
                "inputs is on the device meta, where tensors have no numbers: pass inputs=... on the CPU"
            )
        if not tensor.numel():
            raise RankfallError(f"inputs has a tensor without entries, of shape {tuple(tensor.shape)}: {PASS}")
    return arguments


def first_size(arguments: Arguments) -> int:
    """Return the size of the first axis of the first tensor: the number of samples."""
    first = arguments.tensors()[0]
    return int(first.shape[0]) if first.dim() else 1


def as_format(arguments: Arguments, dtype: torch.dtype) -> Arguments:
    """Return the arguments on the CPU, with floating-point tensors in this dtype. The original is not changed."""

    def change(value: Tensor) -> Tensor:
        value = value.detach().cpu()
        return value.to(dtype) if value.is_floating_point() else value

    return arguments.map(change)


def copy_of(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """Return a copy in evaluation mode on the CPU, in this dtype. Tied weights stay tied."""
    model = unwrap(model)
    for name, value in (*model.named_parameters(), *model.named_buffers()):
        if value.device.type == "meta":
            raise RankfallError(f"{name} is on the device meta, which holds no numbers: create the model on the CPU")
    copies: dict[int, Any] = {}  # id of an original -> its copy
    try:
        copied = copy.deepcopy(model, copies)
    except Exception as error:  # whatever its own __deepcopy__ raises
        kind = type(model).__name__
        raise RankfallError(f"{kind} cannot be copied, and only a copy is measured: {describe_error(error)}") from error
    rebind_functions(copied, copies)
    copied = strip_children(copied).cpu().eval()
    convert_weights(copied, dtype)
    return copied


def rebind_functions(model: nn.Module, copies: dict[int, Any]) -> None:
    """Rebind the functions that modules hold to the copy, as minGPT's `mlpf = lambda x: m.c_proj(...)`: `deepcopy` copies no function."""
    for module in model.modules():
        for holder in (vars(module), *(value for value in vars(module).values() if isinstance(value, dict))):
            for key, function in holder.items():
                if isinstance(function, types.FunctionType):
                    holder[key] = copy_code(function, lambda value: copies.get(id(value), value))


def copy_code(function: types.FunctionType, copied: Callable[[Any], Any]) -> Any:
    """Return a function with the same code whose closure, defaults and globals are `copied`, or the function itself if no copy differs."""
    cells = function.__closure__ or ()
    reached = {key: function.__globals__[key] for key in function.__code__.co_names if key in function.__globals__}
    before = [
        *(cell.cell_contents for cell in cells),
        *(function.__defaults__ or ()),
        *reached.values(),
        *(function.__kwdefaults__ or {}).values(),
    ]
    after = [copied(value) for value in before]
    if all(old is new for old, new in zip(before, after)):
        return function
    values = iter(after)
    closure = tuple(types.CellType(next(values)) for _ in cells)
    defaults = tuple(next(values) for _ in function.__defaults__ or ())
    names = {key: next(values) for key in reached}
    rebound = types.FunctionType(
        function.__code__, function.__globals__ | names, function.__name__, defaults or None, closure or None
    )
    rebound.__kwdefaults__ = {key: next(values) for key in function.__kwdefaults__ or {}} or None
    return rebound


def convert_weights(model: nn.Module, dtype: torch.dtype) -> None:
    """Convert floating-point weights and buffers one by one, so that each old tensor is freed at once. Tied weights stay tied."""
    for module in model.modules():
        for parameter in module._parameters.values():
            if parameter is not None and parameter.is_floating_point():
                parameter.data = parameter.data.to(dtype)
                parameter.grad = None
        for key, buffer in module._buffers.items():
            if buffer is not None and buffer.is_floating_point():
                module._buffers[key] = buffer.to(dtype)


def strip_children(model: nn.Module) -> nn.Module:
    """Replace compiled children by the modules that they wrap."""
    for parent in list(model.modules()):
        for name, child in list(parent._modules.items()):
            if child is not None and unwrap(child) is not child:
                parent._modules[name] = unwrap(child)
        if getattr(parent, "_compiled_call_impl", None) is not None:  # module.compile()
            parent._compiled_call_impl = None
    return model


def call_model(model: nn.Module, arguments: Arguments) -> Any:
    """Call the model without its caches. What it compiles itself (FlexAttention) runs operation by operation."""
    compiles = "torch._dynamo" in sys.modules
    with torch.compiler.set_stance("force_eager") if compiles else nullcontext():
        return model(*arguments.args, **{**caches_off(model), **arguments.kwargs})


@contextmanager
def keep_random_state() -> Iterator[None]:
    """Restore the random states of Python, NumPy and PyTorch on exit. Inside, PyTorch's encoder layer runs operation by operation."""
    python, numpy, fast = random.getstate(), np.random.get_state(), torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.random.fork_rng(range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        random.setstate(python)
        np.random.set_state(numpy)


def run_model(model: nn.Module, inputs: dict[str, Any]) -> Any:
    """Run one pass without gradients and without the model's caches."""
    with torch.no_grad():
        return model(**inputs, **caches_off(model))


def caches_off(model: nn.Module) -> dict[str, bool]:
    """Return the keyword arguments that switch off the caches of a model."""
    accepted = inspect.signature(model.forward).parameters
    return {name: False for name in ("use_cache", "use_mems") if name in accepted}


class Wide(TorchFunctionMode):
    """Mode that keeps float64 and changes nothing else."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return in_float64(func, args, kwargs or {})


def in_float64(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call `func`, but keep float64 where the model asks for float32."""
    name = getattr(func, "__name__", "")
    if name in ("softmax", "sum", "mean", "log_softmax") and kwargs.get("dtype") == torch.float32 and _double(args):
        kwargs = {**kwargs, "dtype": torch.float64}
    elif name == "float" and _double(args):
        return args[0]
    elif name == "to" and _double(args) and (torch.float32 in args[1:] or kwargs.get("dtype") == torch.float32):
        args = tuple(torch.float64 if arg is torch.float32 else arg for arg in args)
        kwargs = {**kwargs, "dtype": torch.float64} if "dtype" in kwargs else kwargs
    elif name == "einsum" and len({tensor.dtype for _, tensor in tensors_in(args)}) > 1:
        args = (args[0], *(operand.double() if isinstance(operand, Tensor) else operand for operand in args[1:]))
    return func(*args, **kwargs)


def _double(args: tuple[Any, ...]) -> bool:
    return bool(args) and isinstance(args[0], Tensor) and args[0].dtype == torch.float64
