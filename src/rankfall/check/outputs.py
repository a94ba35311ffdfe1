"""Judge a model by its outputs: whether two are equal, and which rows of a head and which matrices change none of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rankfall.check.derivative import ROUNDING, Weights, is_unread_end, trained
from rankfall.check.reads import RECTIFIERS
from rankfall.check.recording import RecordedStream
from rankfall.streams.arguments import in_float64
from rankfall.streams.axes import differs
from rankfall.streams.editor import run_through
from rankfall.streams.examine import plain
from rankfall.streams.flow import Edits
from rankfall.streams.mixing import fill_zero_weights
from rankfall.streams.record import PRODUCTS, SAME_STATE, tensors_in

CUTS = RECTIFIERS | {torch.clamp, Tensor.clamp, torch.nn.functional.hardtanh, torch.relu_, torch.maximum, torch.max}
SMALL_HEAD = 8  # a head of fewer outputs is judged output by output, as that of a start and an end


def describe_outputs(recording: RecordedStream, unread: list[str]) -> tuple[str, str] | None:
    """Return a sentence and a path of a parameter or '', or None if all outputs differ and depend on all matrices.

    Matrices of other streams' layers are judged there. `unread` receives those of a last layer that no output needs.
    """
    examined, flow = recording.examined, recording.flow
    others = tuple(f"{name}." for other in examined.flows if other is not flow for name in other.layers if name)
    weights: Weights = {
        name: weight
        for name, weight in examined.model.named_parameters()
        if weight.is_floating_point() and name in recording.used - recording.frozen and not name.startswith(others)
    }
    with fill_zero_weights(examined.model):
        reach = OutputGradients(recording, weights)
    if equal := equal_outputs(recording.output, reach.differentiable):
        maps = {name: weight for name, weight in weights.items() if name in reach.maps}
        with trained(examined, flow, maps), torch.no_grad():  # zero-initialised heads open
            if equal_outputs(plain(examined.model, examined.arguments), reach.differentiable):
                return equal, ""
    layers = tuple(f"{name}." for name in flow.layers if name)
    for name in reach.maps - reach.cut:
        gradient = reach.gradients.get(name)
        if gradient is not None and not name.startswith(layers) and bool(gradient.any()):
            active = gradient.movedim(reach.axes[name], 0).flatten(1).any(1)
            if has_silent_part(active):
                return f"{int((~active).sum())} of {len(active)} outputs of {name} reach no output of the model", name
    largest = max((float(gradient.abs().max()) for gradient in reach.gradients.values()), default=0.0)
    begins = tuple(f"{recording.path_of(addition.branch)}." for addition in recording.additions if not addition.state)
    silent = [
        name
        for name, gradient in reach.gradients.items()
        if float(gradient.abs().max()) <= ROUNDING * largest
        and gradient.shape[:-1].numel() > 1  # the vector of a symbol may be unused
        and not name.startswith(begins)
    ]
    if silent and is_unread_end(examined, silent, recording.used):
        unread += silent
    elif silent and largest:
        return (
            f"{len(silent)} matrices do not change the output, {silent[0]} first: does the output read another token or tensor?",
            silent[0],
        )
    return None


class OutputGradients:
    """Compute the gradients of a random projection of all outputs, and note what the pass reads."""

    def __init__(self, recording: RecordedStream, weights: Weights) -> None:
        examined = recording.examined
        self.axes: dict[str, int] = {}  # matrix of a linear map -> the axis of its outputs
        self.cut: set[str] = set()  # maps whose outputs a rectifier reads, which may be zero by chance
        self._names = {id(weight): name for name, weight in weights.items() if weight.dim() > 1}
        self._outputs: dict[int, tuple[Tensor, str]] = {}  # of maps, up to layout and norm
        generator = torch.Generator().manual_seed(6)
        with torch.enable_grad():
            for weight in weights.values():
                weight.requires_grad_(True)
            edits = Edits(compute=self._compute, copies=True)
            output = run_through(examined.model, examined.arguments, recording.flow, edits, grad=True).output
            tensors = {path: tensor for path, tensor in tensors_in(output) if tensor.requires_grad}
            probes = [torch.randn(x.shape, generator=generator, dtype=torch.float64).to(x) for x in tensors.values()]
            total = [(tensor * probe).sum() for tensor, probe in zip(tensors.values(), probes)]
            gradients = torch.autograd.grad(total, list(weights.values()), allow_unused=True) if total else ()
        self.differentiable = set(tensors)  # paths of outputs
        self.gradients = {name: gradient for name, gradient in zip(weights, gradients) if gradient is not None}

    @property
    def maps(self) -> set[str]:
        return set(self.axes)

    def _compute(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result, name = in_float64(func, args, kwargs), getattr(func, "__name__", "")
        inputs = [tensor for _, tensor in tensors_in((args, kwargs))]
        sources = [self._outputs[id(tensor)][1] for tensor in inputs if id(tensor) in self._outputs]
        if func in PRODUCTS or name.startswith("conv"):
            for weight in (self._names[id(tensor)] for tensor in inputs if id(tensor) in self._names):
                if weight not in self.axes and isinstance(result, Tensor):
                    self.axes[weight] = int(func is torch.addmm or "transpose" in name)
                if isinstance(result, Tensor):
                    self._outputs[id(result)] = result, weight
        elif func in CUTS:
            self.cut |= set(sources)
        elif sources and isinstance(result, Tensor) and (name in SAME_STATE or name.endswith("norm")):
            self._outputs[id(result)] = result, sources[0]
        return result


def has_silent_part(active: Tensor) -> bool:
    """Return whether a half or third of the outputs of a map, or one of a few, is silent and another part is all active. active (O,)"""
    size = len(active)
    for parts in {2, 3} | ({size} if 1 < size < SMALL_HEAD else set()):
        if size % parts == 0:
            by_part = active.view(parts, -1).double().mean(1)
            if bool((by_part == 0).any()) and float(by_part.max()) == 1:
                return True
    return False


def equal_outputs(output: Any, differentiable: set[tuple[Any, ...]]) -> str:
    """Return a sentence on two outputs that are equal, or on an output whose rows are; '' if all differ."""
    tensors = {
        path: tensor
        for path, tensor in tensors_in(output)
        if len(path) < 2 and path in differentiable and tensor.dim() and bool((tensor != tensor.flatten()[0]).any())
    }
    known = list(tensors.items())
    for number, (path, tensor) in enumerate(known):
        for other, before in known[:number]:
            if tensor is not before and tensor.shape == before.shape and torch.equal(tensor, before):
                return f"two outputs are equal, {name_output(other)} and {name_output(path)}: are both read from one part of the head?"
    for path, tensor in known:
        for axis in range(1, tensor.dim() - 1):
            broadcast = tensor.stride(axis) == 0
            if tensor.shape[axis] > 1 and not broadcast and not bool(differs(tensor, tensor.narrow(axis, 0, 1)).any()):
                return (
                    f"all {tensor.shape[axis]} rows of {name_output(path)} {tuple(tensor.shape)} are equal: are the queries behind them "
                    "zero or equal?"
                )
    return ""


def name_output(path: tuple[Any, ...]) -> str:
    if not path:
        return "the output"
    return f"output {path[0] + 1}" if isinstance(path[0], int) else str(path[0])
