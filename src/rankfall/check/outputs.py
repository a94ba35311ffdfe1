"""Judge a model by its outputs: whether two are equal, and which rows of a head and which matrices change none of them."""

from typing import Any

import torch

from rankfall.check.derivative import (
    ROUNDING,
    MapOutputs,
    Weights,
    active_outputs,
    differentiate_weights,
    has_silent_part,
    is_unread_end,
    project,
    trained,
)
from rankfall.check.recording import RecordedStream
from rankfall.streams.axes import differs
from rankfall.streams.editor import run_through
from rankfall.streams.examine import plain
from rankfall.streams.flow import Edits
from rankfall.streams.mixing import fill_zero_weights
from rankfall.streams.record import tensors_in

SMALL_HEAD = 8  # a head of fewer outputs is judged output by output, as that of a start and an end


def describe_outputs(recording: RecordedStream, weights: Weights, unread: list[str]) -> tuple[str, str] | None:
    """Return a sentence and a path of a parameter or '', or None if all outputs differ and depend on all matrices.

    `weights` are those that the pass reads; matrices of other streams' layers are judged there. `unread` receives those of a last layer
    that no output needs.
    """
    examined, flow = recording.examined, recording.flow
    others = tuple(f"{name}." for other in examined.flows if other is not flow for name in other.layers if name)
    weights = {name: weight for name, weight in weights.items() if not name.startswith(others)}
    maps = MapOutputs(weights)
    with fill_zero_weights(examined.model), torch.enable_grad():
        for weight in weights.values():
            weight.requires_grad_(True)
        edits = Edits(compute=maps.compute, copies=True)
        output = run_through(examined.model, examined.arguments, flow, edits, grad=True).output
        computed = differentiate_weights(project(output, 6), weights)
    gradients = {name: gradient for name, gradient in computed.items() if gradient is not None}
    differentiable = {path for path, tensor in tensors_in(output) if tensor.requires_grad}
    if equal := equal_outputs(recording.output, differentiable):
        matrices = {name: weight for name, weight in weights.items() if name in maps.axes}
        with trained(examined, flow, matrices), torch.no_grad():  # zero-initialised heads open
            if equal_outputs(plain(examined.model, examined.arguments), differentiable):
                return equal, ""
    layers = tuple(f"{name}." for name in flow.layers if name)
    for name in maps.axes.keys() - maps.cut:
        gradient = gradients.get(name)
        if gradient is not None and not name.startswith(layers) and bool(gradient.any()):
            active = active_outputs(gradient, maps.axes[name])
            if has_silent_part(active, {2, 3} | ({len(active)} if 1 < len(active) < SMALL_HEAD else set())):
                return f"{int((~active).sum())} of {len(active)} outputs of {name} reach no output of the model", name
    largest = max((float(gradient.abs().max()) for gradient in gradients.values()), default=0.0)
    begins = tuple(f"{recording.path_of(addition.branch)}." for addition in recording.additions if not addition.state)
    silent = [
        name
        for name, gradient in gradients.items()
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
