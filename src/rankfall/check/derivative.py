"""Compare the gradient of parameters with the change of the output, train a few steps to see which parameters ever get one, and judge the
outputs: whether two are equal, and which rows of a head and which matrices change none of them.

A random projection of the output and the last state is differentiated, since a head that begins at zero passes no gradient to the layers.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.check.reads import RECTIFIERS
from rankfall.check.recording import RecordedStream
from rankfall.streams.arguments import in_float64
from rankfall.streams.axes import differs
from rankfall.streams.editor import run_through
from rankfall.streams.examine import Examined, plain
from rankfall.streams.flow import Edits, Flow
from rankfall.streams.mixing import fill_zero_weights
from rankfall.streams.record import PRODUCTS, SAME_STATE, tensors_in

STEP = 1e-5  # of a central difference, relative to the RMS of a parameter: float64 then keeps 8 digits
APART = 0.01  # relative difference of two derivatives that are equal but for rounding and a curved output
STEPS, RATE = 3, 0.01  # of training by signs: a gate, the map behind it, and what lies before both open one by one
ROUNDING = 1e-13  # share of the largest gradient below which one is rounding
CUTS = RECTIFIERS | {torch.clamp, Tensor.clamp, torch.nn.functional.hardtanh, torch.relu_, torch.maximum, torch.max}
SMALL_HEAD = 8  # a head of fewer outputs is judged output by output, as that of a start and an end
Weights = dict[str, Tensor]


def project(value: Any, seed: int) -> Tensor:
    """Return a random projection of the tensors in `value` that can be differentiated. Detached ones, as a memory, are left out."""
    generator = torch.Generator().manual_seed(seed)
    tensors = [tensor for _, tensor in tensors_in(value) if tensor.requires_grad]
    probes = [torch.randn(tensor.shape, generator=generator, dtype=torch.float64).to(tensor) for tensor in tensors]
    return sum(((tensor * probe).sum() for tensor, probe in zip(tensors, probes)), torch.zeros(()))


def project_pass(examined: Examined, flow: Flow, **edits: Any) -> tuple[Tensor, Any]:
    """Return a random projection of the output and the last state of a pass with gradients, and the output."""
    after = run_through(examined.model, examined.arguments, flow, Edits(copies=True, **edits), grad=True)
    return project((after.output, after.states[-1]), 0), after.output


def differentiate_weights(
    value: Tensor, weights: Mapping[str, Tensor], retain_graph: bool = False
) -> dict[str, Tensor | None]:
    """Return the gradient of each weight; None for one on which the value does not depend."""
    if not value.requires_grad or not weights:
        return dict.fromkeys(weights)
    tensors = list(weights.values())
    return dict(zip(weights, torch.autograd.grad(value, tensors, allow_unused=True, retain_graph=retain_graph)))


def gradients_of(examined: Examined, flow: Flow, weights: Weights) -> dict[str, Tensor | None]:
    with torch.enable_grad():
        return differentiate_weights(project_pass(examined, flow)[0], weights)


class MapOutputs:
    """Note, in a pass, which axis of a linear map's matrix holds its outputs, and which maps a rectifier reads."""

    def __init__(self, matrices: Mapping[str, Tensor]) -> None:
        self.axes: dict[str, int] = {}  # matrix of a linear map or convolution -> the axis of its outputs
        self.cut: set[str] = set()  # maps whose outputs a rectifier reads, which may be zero by chance
        self._names: dict[Tensor, str] = {matrix: name for name, matrix in matrices.items() if matrix.dim() > 1}
        self._outputs: dict[Tensor, str] = {}  # of maps, up to layout and norm

    def compute(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result, name = in_float64(func, args, kwargs), getattr(func, "__name__", "")
        inputs = [tensor for _, tensor in tensors_in((args, kwargs))]
        sources = [self._outputs[tensor] for tensor in inputs if tensor in self._outputs]
        if func in CUTS:
            self.cut |= set(sources)
        if not isinstance(result, Tensor):
            return result
        if func in PRODUCTS or name.startswith("conv"):
            for matrix in (self._names[tensor] for tensor in inputs if tensor in self._names):
                self.axes.setdefault(matrix, int(func is torch.addmm or "transpose" in name))
                self._outputs[result] = matrix
        elif sources and func not in CUTS and (name in SAME_STATE or name.endswith("norm")):
            self._outputs[result] = sources[0]
        return result


def active_outputs(gradient: Tensor, axis: int) -> Tensor:
    """Return which outputs (O,) of a map have a gradient."""
    return gradient.movedim(axis, 0).flatten(1).any(1)


def has_silent_part(active: Tensor, parts: Iterable[int]) -> bool:
    """Return whether one of so many equal parts of the outputs (O,) of a map is silent, and another is all active."""
    for count in parts:
        if len(active) % count == 0:
            by_part = active.view(count, -1).double().mean(1)
            if bool((by_part == 0).any()) and float(by_part.max()) == 1:
                return True
    return False


@contextmanager
def restored(weights: Iterable[Tensor]) -> Iterator[None]:
    """Put the values of all weights back at the end of this context."""
    before = [(weight, weight.detach().clone()) for weight in weights]
    try:
        yield
    finally:
        for weight, value in before:
            weight.data.copy_(value)


@contextmanager
def trained(examined: Examined, flow: Flow, weights: Weights) -> Iterator[set[str]]:
    """Train weights for a few steps by signs inside this context. Yield those whose gradient is zero at first and in each step."""
    silent = set(weights)
    with restored(weights.values()):
        for _ in range(STEPS + 1):
            gradients = gradients_of(examined, flow, weights)
            sizes = {name: float(gradient.abs().max()) for name, gradient in gradients.items() if gradient is not None}
            for name, gradient in gradients.items():
                if gradient is not None and sizes[name] > ROUNDING * max(sizes.values()):
                    silent.discard(name)
                    weights[name].data.sub_(RATE * gradient.sign())
        yield silent


def wrong_gradient(examined: Examined, flow: Flow, weights: Weights) -> tuple[str, float, float] | None:
    """Return the last parameter whose gradient is not the derivative of the output, with both along a random direction; or None.

    A map of zeros hides what lies before it, so that none should be left. Nothing is said where the output has kinks, as by a choice of
    the largest scores.
    """
    if examined.dtype != torch.float64:
        return None
    gradients = {name: g for name, g in gradients_of(examined, flow, weights).items() if g is not None}
    generator = torch.Generator().manual_seed(4)
    tables = [table for table in examined.model.modules() if isinstance(table, nn.Embedding)]
    padding = {table.weight: table.padding_idx for table in tables}
    directions = {}
    for name in gradients:
        size = float(weights[name].detach().pow(2).mean().sqrt()) or 0.01
        noise = torch.randn(weights[name].shape, generator=generator, dtype=torch.float64)
        directions[name] = size * noise.to(weights[name])
        if (index := padding.get(weights[name])) is not None:
            directions[name][index] = 0.0  # an embedding gives this row no gradient
    exact = {name: float((gradients[name] * directions[name]).sum()) for name in gradients}
    scale = sum(value**2 for value in exact.values()) ** 0.5

    def difference(names: list[str], step: float) -> float:
        values = []
        for sign in (1, -1):
            with restored(weights[name] for name in names):
                for name in names:
                    weights[name].data.add_(sign * step * directions[name])
                values.append(float(project_pass(examined, flow)[0].detach()))
        return (values[0] - values[1]) / (2 * step)

    def is_wrong(names: list[str]) -> float | None:
        """Return the central difference if it is smooth and differs from the gradient."""
        total = sum(exact[name] for name in names)
        numeric = [difference(names, step) for step in (STEP, STEP / 4)]
        limit = APART * max(abs(total), abs(numeric[0])) + 1e-4 * scale
        smooth = abs(numeric[0] - numeric[1]) < 0.1 * limit
        return numeric[0] if smooth and abs(numeric[0] - total) > limit else None

    if not scale or is_wrong(list(exact)) is None:
        return None
    for name in reversed(exact):
        if (numeric := is_wrong([name])) is not None:
            return name, exact[name], numeric
    return None


def is_unread_end(examined: Examined, names: list[str], used: set[str]) -> bool:
    """Return whether these matrices are a part of a last layer that nothing reads, while other matrices of that layer are read.

    Such are local queries if a head reads the global token, and an update of edges if it reads nodes. A detached matrix changes the output.
    """
    ends = tuple(f"{flow.layers[-1]}." for flow in examined.flows if flow.depth > 1)
    matrices: Weights = {name: x for name, x in examined.model.named_parameters() if name in used and x.dim() > 1}
    if not {name for name in matrices if name.startswith(ends)} > set(names):
        return False
    generator = torch.Generator().manual_seed(7)
    with fill_zero_weights(examined.model), restored(matrices.values()), torch.no_grad():
        before = plain(examined.model, examined.arguments)
        for name in names:
            matrices[name].add_(torch.randn(matrices[name].shape, generator=generator).to(matrices[name]))
        after = plain(examined.model, examined.arguments)
    return not any(bool(differs(x, y).any()) for (_, x), (_, y) in zip(tensors_in(before), tensors_in(after)))


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
    for name in (name for name in maps.axes if name not in maps.cut):  # in the order of the pass
        gradient = gradients.get(name)
        if gradient is not None and not name.startswith(layers) and bool(gradient.any()):
            active = active_outputs(gradient, maps.axes[name])
            if has_silent_part(active, {2, 3} | ({len(active)} if 1 < len(active) < SMALL_HEAD else set())):
                return f"{int((~active).sum())} of {len(active)} outputs of {name} reach no output of the model", name
    largest = max((float(gradient.abs().max()) for gradient in gradients.values()), default=0.0)
    begins = tuple(f"{recording.path_of(addition.branch)}." for addition in recording.additions if not addition.state)
    silent = [name for name, gradient in gradients.items() if float(gradient.abs().max()) <= ROUNDING * largest]
    # the vector of a symbol may be unused
    silent = [name for name in silent if gradients[name].shape[:-1].numel() > 1 and not name.startswith(begins)]
    if silent and is_unread_end(examined, silent, recording.used):
        unread += silent
    elif silent and largest:
        cause = "does the output read another token or tensor?"
        return f"{len(silent)} matrices do not change the output, {silent[0]} first: {cause}", silent[0]
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
                rows = f"{tensor.shape[axis]} rows of {name_output(path)} {tuple(tensor.shape)}"
                return f"all {rows} are equal: are the queries behind them zero or equal?"
    return ""


def name_output(path: tuple[Any, ...]) -> str:
    if not path:
        return "the output"
    return f"output {path[0] + 1}" if isinstance(path[0], int) else str(path[0])
