"""The recording that all checks read: one pass of the model with its states, additions, attention, activations and output."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.check.attention import TIMES, AttentionReader, ScoreScales, masked_scores, rms, weights_of
from rankfall.check.layer import StreamReport
from rankfall.check.passes import run_pass
from rankfall.check.reads import (
    RECTIFIERS,
    SQUASHERS,
    HeadNumbers,
    NormRead,
    SoftmaxAxes,
    Units,
    heads_first,
    heads_of,
    is_inverse,
    is_triangle,
    looks_random,
    norm_reads,
    units_of,
    unlike_groups,
)
from rankfall.streams.arguments import Arguments
from rankfall.streams.axes import differs
from rankfall.streams.editor import PassResult
from rankfall.streams.examine import Examined
from rankfall.streams.flow import TOKENWISE, Branch, Flow
from rankfall.streams.frames import Call, Frames
from rankfall.streams.record import PRODUCTS, SAME_STATE, SOFTMAX, tensors_in

EPS = ("eps", "epsilon", "variance_epsilon")  # attributes of norms
ACTIVATIONS = (nn.ReLU, nn.GELU, nn.SiLU, nn.LeakyReLU, nn.Tanh, nn.Sigmoid)
ROOT = (Call("", 0),)  # where a hook of the model itself computes
TINY_FACTOR = 1e-2  # the factors of LayerScale begin at 1e-1 to 1e-6


@dataclass(frozen=True)
class Addition:
    """One residual addition: RMS of the state and of the branch, and the largest absolute value of the branch by channel."""

    branch: Branch
    state: float
    value: float
    channels: Tensor
    rectified: bool  # whether the state has no negative number, although the sum before it has
    doubled: bool  # whether the state is the sum before it plus the state in that sum, or the branch is the state

    @property
    def ratio(self) -> float:
        return self.value / self.state if self.state else math.inf


@dataclass
class RecordedStream:
    """One stream of a model, recorded. `loss` is a function of the output, `build` a function of `width` or `depth`."""

    examined: Examined
    flow: Flow
    report: StreamReport
    states: list[Tensor] = field(default_factory=list)  # (S, T, D), layers 0 .. L
    additions: list[Addition] = field(default_factory=list)
    heads: list[HeadNumbers] = field(default_factory=list)
    units: list[Units] = field(default_factory=list)
    norms: list[NormRead] = field(default_factory=list)
    output: Any = None
    used: set[str] = field(default_factory=set)  # names of the parameters that the pass reads
    # parameters that it reads and the model does not hold
    foreign: dict[nn.Parameter, None] = field(default_factory=dict)
    unregistered: set[str] = field(default_factory=set)  # plain tensors that the pass reads and that look random
    frozen: set[str] = field(default_factory=set)  # names of the parameters that need no gradient
    # attention inside tokens, with the size of its weights
    within: list[tuple[Branch, int]] = field(default_factory=list)
    misaligned: list[tuple[Branch, int]] = field(default_factory=list)  # causal from the first of more keys than tokens
    triangles: bool = False  # whether an operation reads a triangular mask (T, T) with another matrix, or cuts one
    unread_mask: bool = False  # whether a triangular mask is made or held and meets no scores
    # linear maps of a layer that read the output of another one as it is, and whether that one widens and this one narrows
    unbent: list[tuple[str, bool]] = field(default_factory=list)
    late_mask: bool = False  # whether a triangular mask meets the weights that a softmax returns
    inverse: list[str] = field(default_factory=list)  # norms whose output halves if their input doubles
    unlike_groups: list[tuple[str, str]] = field(default_factory=list)  # module, and how keys and values are shared
    # module and axis of a softmax whose products sum over others
    sideways: list[tuple[str, int]] = field(default_factory=list)
    gates: int = 0  # products with a learned factor below TINY_FACTOR, as of LayerScale
    hidden: Tensor | None = None  # (S, T): tokens that no attention of the stream reads
    streams: list[RecordedStream] = field(default_factory=list)  # all streams of the model
    loss: Callable[[Any], Tensor] | None = None
    build: Callable[..., Any] | None = None

    def run(self, arguments: Arguments | None = None, **edits: Any) -> PassResult:
        """Run the stream again with other arguments or with edits. The states of the result are rows (S, T, D)."""
        return run_pass(self.examined, self.flow, arguments, **edits)

    def path_of(self, branch: Branch) -> str:
        """Return the module path of a branch."""
        layer = self.flow.layers[branch.layer - 1]
        known = dict(self.examined.model.named_modules())
        return next((name for name in (f"{layer}.{branch.name}", branch.name, layer) if name in known), layer)

    def layer_path(self, layer: int) -> str:
        """Return the module path of a layer, or of its first part if its code is inline; '' of layer 0."""
        if not layer or self.flow.layers[layer - 1] in dict(self.examined.model.named_modules()):
            return self.flow.layers[layer - 1] if layer else ""
        return self.path_of(self.flow.of_layer(layer)[0])


def record(examined: Examined, flow: Flow, report: StreamReport) -> RecordedStream:
    """Run one pass of the model, and record what the checks read."""
    recording = RecordedStream(examined, flow, report)
    modules = dict(examined.model.named_modules())
    layers = tuple(f"{name}." for name in flow.layers)
    square = (report.tokens, report.tokens)
    before: list[Tensor] = []  # the state and the branch of the addition before
    names: dict[Tensor, str] = {parameter: name for name, parameter in examined.model.named_parameters()}
    plain = {
        value: f"{name}.{key}".lstrip(".")
        for name, module in modules.items()
        for key, value in vars(module).items()
        if isinstance(value, Tensor) and value.is_floating_point() and looks_random(value)
    }
    attending = {number: operation.call.module for operation, number in reversed(flow.attends.items())}
    reader = AttentionReader(flow, report.tokens, alone=False)
    places: dict[Tensor, str] = {}  # what an attention returned, and its module
    # outputs of linear maps, their modules, the widths of their narrower inputs
    mapped: dict[Tensor, tuple[str, int]] = {}
    scales = ScoreScales()
    softened: set[Tensor] = set()  # weights that a softmax returned
    norm_inputs: dict[str, Tensor] = {}
    axes = SoftmaxAxes()

    def note(tensors: list[Tensor]) -> None:
        """Note the parameters among the arguments of an operation."""
        for tensor in tensors:
            if tensor in names:
                recording.used.add(names[tensor])
            elif isinstance(tensor, nn.Parameter):
                recording.foreign[tensor] = None
            elif tensor in plain:
                recording.unregistered.add(plain[tensor])

    def look(branch: Branch, state: Tensor, value: Tensor) -> None:
        """Record an addition."""
        rows = flow.layout.to_rows(value) if value.shape == state.shape else value.reshape(1, -1, value.shape[-1])
        rectified = doubled = False
        if before and before[0].shape == state.shape:
            total = before[0] + before[1]
            rectified = bool((total < 0).any()) and not bool((state < 0).any())
            repeated = not bool(differs(state, total + before[0]).any()) and bool(differs(state, total).any())
            doubled = repeated or (value.shape == state.shape and bool(state.any()) and torch.equal(value, state))
        before[:] = [state.clone(), value.clone()] if value.shape == state.shape else []
        size = rows.abs().amax((0, 1))
        recording.additions.append(Addition(branch, rms(state), rms(value), size, rectified, doubled))

    def attend(number: int, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an attention of branch `number` and record its heads."""
        note([tensor for _, tensor in tensors_in((args, kwargs))])
        result, here = reader.attend(number, func, args, kwargs), frames.stack[-1].module
        if isinstance(result, Tensor):
            places[result] = here
        branch = flow.branches[number]
        weights = weights_of(func, args, kwargs, result)
        axes.see(here, func, args, kwargs, result)
        if branch.mixes and weights.shape[-1] > 1 and weights.dim() >= 3:
            axis = args[1] if len(args) > 1 and func in SOFTMAX else kwargs.get("dim")
            axis = -1 % weights.dim() if axis is None else axis % weights.dim()
            scores = masked_scores(func, args, kwargs)
            scores = None if scores is None else heads_first(scores, axis, report.tokens)
            by_head, scale = heads_first(weights, axis, report.tokens), scales.of_attention(func, args, kwargs)
            recording.heads += heads_of(branch.layer, attending[number], by_head, scores, scale)
            if func in SOFTMAX and weights.shape[-2:] == square:
                softened.add(result)
        if report.tokens == weights.shape[-2] < weights.shape[-1]:
            visible = torch.ones(weights.shape[-2:], dtype=torch.bool).tril()
            if bool(((weights > 0) == visible).all()):
                recording.misaligned.append((branch, weights.shape[-1]))
        size = weights.shape[-1]
        inner = branch.kind == TOKENWISE or weights.shape[1:2] == (report.tokens,)  # (B, T, H, H)
        if inner and weights.dim() > 3 and report.tokens != size == weights.shape[-2]:
            recording.within.append((branch, size))
        return result

    def watch(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run any other operation and record masks, linear maps, units, and sums over weights of attention."""
        result, name = reader.compute(func, args, kwargs), getattr(func, "__name__", "")
        tensors, stack = [tensor for _, tensor in tensors_in((args, kwargs))], frames.stack or ROOT
        here = stack[-1].module
        if any(True for _ in tensors_in(result)):  # not an attribute, such as a shape
            note(tensors)
            scales.see(func, args, kwargs, result)
            axes.see(here, func, args, kwargs, result)
        # torch's own modules look at masks
        if not recording.triangles and not type(modules[here]).__module__.startswith("torch.nn."):
            squares = [tensor for tensor in tensors if tensor.shape[-2:] == square]
            cuts = name in ("tril", "triu") and bool(squares)
            recording.unread_mask |= cuts
            # a mask that is made and not used meets no scores
            meets = len(squares) > 1 and any(is_triangle(mask) for mask in squares)
            recording.triangles = meets or (cuts and squares[0].dim() > 2)
            recording.late_mask = recording.triangles and any(tensor in softened for tensor in squares)
        if tensors and (func in PRODUCTS or name in SAME_STATE):
            first = tensors[0]
            source, width = mapped.get(first, ("", 0))
            if func in PRODUCTS and result.shape[-1] >= first.shape[-1]:
                mapped[result] = here, first.shape[-1]
            elif func not in PRODUCTS and source and isinstance(result, Tensor):
                mapped[result] = source, width
            if func in PRODUCTS and source != here and here.startswith(layers) and source.startswith(layers):
                recording.unbent.append((here, first.shape[-1] > max(width, result.shape[-1])))
        if name in TIMES:
            factors = [tensor for tensor in tensors if isinstance(tensor, nn.Parameter)]
            recording.gates += any(x.squeeze().dim() < 2 and 0 < rms(x) < TINY_FACTOR for x in factors)
        if func in RECTIFIERS or func in SQUASHERS:
            is_layer = len(stack) > 1 and isinstance(modules[here], ACTIVATIONS)  # then its owner is named
            recording.units.append(units_of(stack[-2 if is_layer else -1].module, func, result))
            mapped.pop(result, None)  # a rectifier in place returns the tensor that it changed
        return result

    def leave(call: Call, inputs: Any, _: Any) -> None:
        """Record a norm at the end of its call."""
        module, kind = modules[call.module], type(modules[call.module]).__name__
        eps = next((value for key in EPS if isinstance(value := getattr(module, key, None), float)), 0.0)
        if eps and "norm" in kind.lower() and inputs and isinstance(inputs[0], Tensor):
            norm_inputs.setdefault(call.module, inputs[0].detach().clone())
            recording.norms += norm_reads(call.module, eps, inputs[0], "Layer" in kind)

    with Frames(examined.model, on_exit=leave) as frames:
        passed = run_pass(examined, flow, edit=look, attend=attend, compute=watch, score=reader.score)
    unlike = [(places[result], unlike_groups(keys, values)) for result, keys, values in reader.pairs]
    recording.unlike_groups = [(where, sentence) for where, sentence in unlike if sentence]
    inside = attending.values()  # layers of inline code have no module
    recording.sideways = [pair for pair in axes.wrong if pair[0] in inside or f"{pair[0]}.".startswith(layers)]
    # where tokens mix, queries may read a map of the state, but a map that widens and one that narrows lack a function
    tokenwise = [recording.path_of(branch) for branch in flow.branches if branch.kind == TOKENWISE]
    recording.unbent = [(name, wider) for name, wider in recording.unbent if wider or name in tokenwise]
    recording.inverse = [name for name, x in norm_inputs.items() if is_inverse(modules[name], x)]
    masks = (buffer[..., : report.tokens, : report.tokens] for buffer in examined.model.buffers() if buffer.dim() > 1)
    recording.unread_mask |= any(mask.shape[-2:] == square and is_triangle(mask) for mask in masks)
    recording.states, recording.output = passed.states, passed.output
    return recording
