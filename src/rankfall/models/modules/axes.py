"""Which axes of a state are samples, tokens, features, or several streams of one token: tried by changing one number, or one sample."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.models.modules.flow import Branch, Flow, Layout
from rankfall.models.modules.given import Arguments, first_size
from rankfall.models.modules.passes import Edits, run_through

NEAR = {torch.float64: 1e-8}  # relative difference of two states that are equal but for rounding
NEAR_FLOAT32 = 1e-3
PLACE = 0.4  # of each axis


def with_axes(model: nn.Module, arguments: Arguments, flow: Flow) -> Flow:
    """The stream with the axis of its features, and axes of several streams of one token."""
    shape = flow.entry.shape if flow.entry is not None else ()
    if len(shape) < 3:
        return flow
    streams = stream_axes(model, arguments, flow, len(shape))
    feature = flow.layout.feature if streams else feature_axis(model, arguments, flow)
    return replace(flow, width=shape[feature], layout=replace(flow.layout, feature=feature, streams=streams))


def feature_axis(model: nn.Module, arguments: Arguments, flow: Flow) -> int:
    """The axis along which one number changes all others in every branch, where the usual axis is one of tokens: only some branches
    change what lies along it."""
    values: dict[int, tuple[Tensor, Tensor]] = {}
    covered: list[list[int]] = []  # of each branch, along each axis: at how many places something changed

    def keep(branch: Branch, state: Tensor, value: Tensor) -> None:
        values[branch.number] = (value.clone(), state + value if flow.skips else value.clone())

    def compare(branch: Branch, state: Tensor, value: Tensor) -> Tensor:
        before, total = values[branch.number]
        if value.shape == before.shape == state.shape:
            apart = differs(value, before)
            if bool(apart.any()):
                covered.append([int(others_any(apart, axis).sum()) for axis in range(apart.dim())])
        return change_number(total)

    run_through(model, arguments, flow, Edits(edit=keep))
    run_through(model, arguments, flow, Edits(edit=compare, enter=change_number, partial=True))
    usual, shape = flow.layout.feature, flow.entry.shape if flow.entry is not None else ()
    covered = [counts for counts in covered if len(counts) == len(shape)]
    along = [counts[usual] for counts in covered]
    if not along or min(along) > 1 or max(along) == 1:
        return usual
    everywhere = [
        axis for axis, size in enumerate(shape) if size > 1 and all(counts[axis] == size for counts in covered)
    ]
    return everywhere[0] if len(everywhere) == 1 else usual


def stream_axes(model: nn.Module, arguments: Arguments, flow: Flow, dims: int) -> tuple[int, ...]:
    """Axes along which one number of the inputs changes all of the first state, at one place of all other axes: copies of a token."""
    if dims < 4:
        return ()
    apart = entered(model, arguments, flow)
    if apart is None:
        return ()
    axes = [axis for axis in range(apart.dim()) if axis != flow.layout.feature % apart.dim()]
    counts = {axis: int(others_any(apart, axis).sum()) for axis in axes}
    full = tuple(axis for axis in axes if counts[axis] == apart.shape[axis] > 1)
    others = [axis for axis in axes if axis not in full]
    # A first state whose every place sees the whole sample, as a small map of features does, has tokens along these axes and no copies.
    samples = first_size(arguments)
    tokens = [axis for axis in others if apart.shape[axis] > 1 and not (axis == 0 and apart.shape[0] == samples)]
    return full if tokens and all(counts[axis] == 1 for axis in others) else ()


def entered(model: nn.Module, arguments: Arguments, flow: Flow, place: float = PLACE) -> Tensor | None:
    """Where the first state changes with one number of the inputs; None where it depends on none that was tried."""
    before = run_through(model, arguments, flow, Edits()).states[0]
    for number, tensor in enumerate(arguments.tensors()):
        if tensor.dtype == torch.bool or tensor.numel() < 2:
            continue
        try:
            after = run_through(model, exchanged(arguments, number, place), flow, Edits()).states[0]
        except Exception:  # whatever a model raises on inputs that are not its own
            continue
        if after.shape == before.shape and bool((apart := differs(after, before)).any()):
            return apart
    return None


def exchanged(arguments: Arguments, number: int, place: float) -> Arguments:
    """The arguments with one number of one tensor changed: to another that the tensor has, where it is of whole numbers."""
    count = iter(range(len(arguments.tensors())))

    def change(value: Any) -> Any:
        if isinstance(value, Tensor):
            return change_number(value, place) if next(count) == number else value
        if isinstance(value, dict):
            return {key: change(item) for key, item in value.items()}
        if type(value) in (list, tuple):
            return type(value)(change(item) for item in value)
        return value

    return Arguments(change(arguments.args), change(arguments.kwargs))


def change_number(tensor: Tensor, place: float = PLACE) -> Tensor:
    """A copy with one number changed by about its own size."""
    changed = tensor.detach().clone()
    spot = tuple(min(size - 1, int(size * place)) for size in changed.shape)
    if changed.is_floating_point():
        changed[spot] = 1.5 * changed.pow(2).mean().sqrt().clamp_min(1e-6) - changed[spot]
    else:
        others = changed[changed != changed[spot]]
        changed[spot] = others[0] if len(others) else changed[spot]
    return changed


def with_samples(model: nn.Module, arguments: Arguments, flow: Flow, batch: int) -> Flow:
    """The stream with its samples, also where they touch each other, and from which layer on they do."""
    shape = flow.entry.shape if flow.entry is not None else ()
    if not flow.layout.samples and flow.layout.groups == 1 and batch > 1:
        layout = samples_first(flow.layout, shape, batch)
        if layout is None or not enters_alone(model, arguments, replace(flow, layout=layout), batch):
            return flow
        flow = replace(flow, layout=layout)
    return replace(flow, touching=touching(model, arguments, flow))


def samples_first(layout: Layout, shape: tuple[int, ...], batch: int) -> Layout | None:
    """A layout whose first axis of rows is samples; None where it cannot be."""
    axes = layout.tokens
    if len(axes) > 1 and shape[axes[0]] == batch:
        return replace(layout, samples=axes[:1], tokens=axes[1:])
    if len(axes) == 1 and shape[axes[0]] % batch == 0 and shape[axes[0]] > batch:
        return replace(layout, groups=batch)
    return None


def enters_alone(model: nn.Module, arguments: Arguments, flow: Flow, batch: int) -> bool:
    """Whether a number of the last sample of the inputs changes the last sample of the first state, and no other."""
    apart = entered(model, arguments, flow, 1 - 1 / (2 * batch))
    if apart is None:
        return False
    changed = flow.layout.rows(apart.double()).flatten(1).any(1).nonzero().flatten().tolist()
    return bool(changed == [batch - 1])


def touching(model: nn.Module, arguments: Arguments, flow: Flow) -> str:
    """The layer from which on the first sample of the first state changes other samples; nothing where it does not."""
    before = [flow.layout.rows(state) for state in run_through(model, arguments, flow, Edits()).states]
    if before[0].shape[0] < 2:
        return ""

    def change(tensor: Tensor) -> Tensor:
        if flow.entry is None or tuple(tensor.shape) != flow.entry.shape:
            return tensor
        rows = flow.layout.rows(tensor).clone()
        noise = torch.randn(rows[0].shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
        rows[0] = noise.to(rows.dtype) * rows.pow(2).mean().sqrt().clamp_min(1e-6)
        return flow.layout.like(rows, tensor)

    def edit(branch: Branch, state: Tensor, value: Tensor) -> Tensor | None:
        return None if branch.number else change(state + value if flow.skips else value)

    for edits in (Edits(enter=change), Edits(edit=edit)):
        after = [flow.layout.rows(state) for state in run_through(model, arguments, flow, edits).states]
        for layer, (one, other) in enumerate(zip(after, before)):
            if layer and one.shape == other.shape and bool(differs(one[1:], other[1:]).any()):
                return f"layer {layer}"
    return ""


def differs(one: Tensor, other: Tensor) -> Tensor:
    """Where two tensors are not equal, but for rounding."""
    size = other.detach().nan_to_num(0.0, 0.0, 0.0).abs().max()
    close = (one - other).abs() <= NEAR.get(one.dtype, NEAR_FLOAT32) * size
    return ~(close | (one == other) | (one.isnan() & other.isnan()))


def others_any(apart: Tensor, axis: int) -> Tensor:
    """Along one axis, whether anything is true."""
    return apart.movedim(axis, 0).flatten(1).any(1)
