"""A forward pass of a model in float64 throughout.

Models that ask for float32 inside (softmax, RMSNorm) would round a float64 pass to float32. While `Wide` is active, requests to
convert a float64 tensor to float32 are ignored, and an einsum of mixed formats is computed in float64.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from rankfall.streams.record import tensors_in


def run_model(model: nn.Module, inputs: dict[str, Any]) -> Any:
    """Run one pass without gradients and without the model's caches."""
    with torch.no_grad():
        return model(**inputs, **caches_off(model))


def caches_off(model: nn.Module) -> dict[str, bool]:
    """Return the keyword arguments that switch off the caches of a model."""
    accepted = inspect.signature(model.forward).parameters
    return {name: False for name in ("use_cache", "use_mems") if name in accepted}


def batch_of(inputs: dict[str, Any]) -> int:
    """Return the number of samples in a batch of model inputs."""
    return int(next(tensor for _, tensor in tensors_in(inputs)).shape[0])


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
