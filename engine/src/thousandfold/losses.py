"""The step of one member as a function of its weights, its buffers and a batch, from an ordinary module and an ordinary loss."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from thousandfold.errors import EngineError
from thousandfold.member_functions import gradient_of
from thousandfold.step import Name

Batch = Any  # a tensor, or tensors in a tuple, list or dictionary
Loss = Callable[[nn.Module, Batch], Any]  # a scalar, or a scalar and metrics by name

LOSS: Name = ("loss", "")
BUFFER = "buffer"  # kind of the results that replace a buffer


class LossModule(nn.Module):
    """A module and its loss as one module, so that one call can replace the parameters."""

    def __init__(self, module: nn.Module, loss: Loss, like: Batch) -> None:
        super().__init__()
        self.module, self.loss, self.like = module, loss, like
        self.differentiated: list[Tensor] = []
        self.gradient: tuple[Tensor | None, ...] = ()  # of the last loss by each of `differentiated`

    def forward(self, *tensors: Tensor) -> dict[Name, Tensor]:
        before = dict(self.module.named_buffers())
        returned = self.loss(self.module, unflatten(self.like, tensors))
        value, metrics = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, {})
        if not isinstance(metrics, Mapping):
            raise EngineError(f"expected a loss, or a loss and a dictionary of metrics; found {type(metrics).__name__}")
        if not isinstance(value, Tensor) or value.numel() != 1:
            shape = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise EngineError(
                f"expected a loss of one number; found {shape}: return a mean or sum, or that and a dictionary"
            )
        if self.differentiated:
            # Here, since a checkpointed part runs again in the backward pass, with the weights that are in place.
            self.gradient = gradient_of(value, self.differentiated, allow_unused=True)
        results = {LOSS: value.detach().reshape(()) if self.differentiated else value.reshape(())}
        for name, metric in metrics.items():
            if not isinstance(metric, Tensor) or metric.numel() != 1:
                raise EngineError(f"expected a tensor of one number as the metric {name!r}: take its mean or sum")
            results["metric", name] = metric.detach().reshape(())
        for name, buffer in self.module.named_buffers():
            if buffer is not before.get(name):  # such as by `self.count = self.count + 1`
                results[BUFFER, name] = buffer.detach()
        return results


def call_loss(module: LossModule, values: Mapping[str, Tensor], tensors: Sequence[Tensor]) -> dict[Name, Tensor]:
    """Return the results of a member. `values`: its weights and buffers by their names in the user's module."""
    named = {f"module.{name}": value for name, value in values.items()}
    return dict(torch.func.functional_call(module, named, tuple(tensors)))


def flatten(batch: Batch) -> list[Tensor]:
    """Return the tensors of a batch in order."""
    if isinstance(batch, Tensor):
        return [batch]
    parts = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, tuple | list) else None
    if parts is None:
        raise EngineError(f"expected a batch of tensors; found {type(batch).__name__}")
    return [tensor for part in parts for tensor in flatten(part)]


def unflatten(like: Batch, tensors: Sequence[Tensor]) -> Batch:
    """Return tensors in the form of the batch `like`."""
    remaining = iter(tensors)

    def fill(part: Batch) -> Batch:
        if isinstance(part, Tensor):
            return next(remaining)
        if isinstance(part, Mapping):
            return {name: fill(value) for name, value in part.items()}
        if hasattr(part, "_fields"):  # a named tuple
            return type(part)(*map(fill, part))
        return type(part)(map(fill, part))

    return fill(like)
