"""Axes of a state: samples, tokens, features, or several streams of one token. Changing one number or one sample reveals them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import torch
from torch import Tensor, nn

from rankfall.errors import RankfallError
from rankfall.streams.arguments import Arguments, first_size
from rankfall.streams.editor import branch_values, run_through
from rankfall.streams.flow import Branch, Edits, Flow, Layout

NEAR = {torch.float64: 1e-8}  # relative difference of two states that are equal up to rounding
NEAR_FLOAT32 = 1e-3
PLACE = 0.4  # index of the changed number, as a share of each axis


def with_axes(model: nn.Module, arguments: Arguments, flow: Flow) -> Flow:
    """Return the stream with its feature axis and the axes of several streams of one token."""
    if len(flow.shape) < 3:
        return flow
    streams = stream_axes(model, arguments, flow)
    feature = flow.layout.feature if streams else feature_axis(model, arguments, flow)
    return replace(flow, width=flow.shape[feature], layout=replace(flow.layout, feature=feature, streams=streams))


def feature_axis(model: nn.Module, arguments: Arguments, flow: Flow) -> int:
    """Return the feature axis: the usual one, or another along which one number changes all others in every branch.

    Another axis is considered only if the usual one looks like tokens: some branches change entries along it and some do not.
    """
    untouched = {one.branch.number: (one.value, one.total) for one in branch_values(model, arguments, flow)}
    covered: list[list[int]] = []  # for each branch and axis: the number of indices with a change

    def compare(branch: Branch, state: Tensor, value: Tensor) -> Tensor:
        before, total = untouched[branch.number]
        if value.shape == before.shape == state.shape:
            apart = differs(value, before)
            if bool(apart.any()):
                covered.append([int(others_any(apart, axis).sum()) for axis in range(apart.dim())])
        return change_number(total)

    run_through(model, arguments, flow, Edits(edit=compare, enter=change_number, partial=True))
    usual, sizes = flow.layout.feature, enumerate(flow.shape)
    covered = [counts for counts in covered if len(counts) == len(flow.shape)]
    along = [counts[usual] for counts in covered]
    if not along or min(along) > 1 or max(along) == 1:
        return usual
    everywhere = [axis for axis, size in sizes if size > 1 and all(counts[axis] == size for counts in covered)]
    return everywhere[0] if len(everywhere) == 1 else usual


def stream_axes(model: nn.Module, arguments: Arguments, flow: Flow) -> tuple[int, ...]:
    """Return the axes that hold copies of a token.

    One changed number of the inputs changes the first state at all indices of such an axis, and at one index of every other axis.
    """
    if len(flow.shape) < 4 or (apart := entered(model, arguments, flow)) is None:
        return ()
    axes = [axis for axis in range(apart.dim()) if axis != flow.layout.feature % apart.dim()]
    counts = {axis: int(others_any(apart, axis).sum()) for axis in axes}
    full = tuple(axis for axis in axes if counts[axis] == apart.shape[axis] > 1)
    remaining = [axis for axis in axes if axis not in full]
    # If every position of the first state sees the whole sample, as in a small feature map, these axes are tokens and not copies.
    samples = first_size(arguments)
    tokens = [axis for axis in remaining if apart.shape[axis] > 1 and not (axis == 0 and apart.shape[0] == samples)]
    return full if tokens and all(counts[axis] == 1 for axis in remaining) else ()


def entered(model: nn.Module, arguments: Arguments, flow: Flow, place: float = PLACE) -> Tensor | None:
    """Return where the first state changes with one number of the inputs, or None if it depends on none of the numbers tried."""
    before = run_through(model, arguments, flow, Edits()).states[0]
    for number, tensor in enumerate(arguments.tensors()):
        if tensor.dtype == torch.bool or tensor.numel() < 2:
            continue
        try:
            after = run_through(model, exchanged(arguments, number, place), flow, Edits()).states[0]
        except Exception:  # whatever a model raises on changed inputs
            continue
        if after.shape == before.shape and bool((apart := differs(after, before)).any()):
            return apart
    return None


def exchanged(arguments: Arguments, number: int, place: float) -> Arguments:
    """Return the arguments with one number of one tensor changed."""
    count = itertools.count()
    return arguments.map(lambda tensor: change_number(tensor, place) if next(count) == number else tensor)


def change_number(tensor: Tensor, place: float = PLACE) -> Tensor:
    """Return a copy with one number changed by about the tensor's RMS. An integer becomes another integer of that tensor."""
    changed = tensor.detach().clone()
    spot = tuple(min(size - 1, int(size * place)) for size in changed.shape)
    if changed.is_floating_point():
        changed[spot] = 1.5 * changed.pow(2).mean().sqrt().clamp_min(1e-6) - changed[spot]
    else:
        candidates = changed[changed != changed[spot]]
        changed[spot] = candidates[0] if len(candidates) else changed[spot]
    return changed


def with_samples(model: nn.Module, arguments: Arguments, flow: Flow, batch: int) -> Flow:
    """Return the stream with its axis of samples, and the first layer at which samples affect each other."""
    if not flow.layout.samples and flow.layout.groups == 1 and batch > 1:
        layout = samples_first(flow.layout, flow.shape, batch)
        if layout is None:
            refuse_folded(model, arguments, flow, batch)
        if layout is None or not enters_alone(model, arguments, replace(flow, layout=layout), batch):
            return flow
        flow = replace(flow, layout=layout)
    return replace(flow, touching=touching(model, arguments, flow))


def samples_first(layout: Layout, shape: tuple[int, ...], batch: int) -> Layout | None:
    """Return a layout whose first axis of tokens holds samples, or None if the shape does not allow it."""
    axes = layout.tokens
    if len(axes) > 1 and shape[axes[0]] == batch:
        return replace(layout, samples=axes[:1], tokens=axes[1:])
    if len(axes) == 1 and shape[axes[0]] % batch == 0 and shape[axes[0]] > batch:
        return replace(layout, groups=batch)
    return None


def refuse_folded(model: nn.Module, arguments: Arguments, flow: Flow, batch: int) -> None:
    """Raise an error if the axis of samples also holds several streams of a token, as hyper-connections of shape (B * S, T, D) do."""
    shape = flow.shape
    copies, remainder = divmod(shape[0] if len(flow.layout.tokens) > 1 else 0, batch)
    if copies < 2 or remainder or (apart := entered(model, arguments, flow)) is None:
        return
    counts = [int(others_any(apart, axis).sum()) for axis in flow.layout.tokens]
    if counts == [copies, *[1] * (len(counts) - 1)]:
        raise RankfallError(
            f"states of shape {shape} hold {copies} streams of each token in the axis of {batch} samples, where they cannot be told from "
            f"samples: give them an axis of their own, as in {(batch, *shape[1:-1], copies, shape[-1])}"
        )


def enters_alone(model: nn.Module, arguments: Arguments, flow: Flow, batch: int) -> bool:
    """Return whether a number in the last sample of the inputs changes only the last sample of the first state."""
    apart = entered(model, arguments, flow, 1 - 1 / (2 * batch))
    if apart is None:
        return False
    changed = flow.layout.to_rows(apart.double()).flatten(1).any(1).nonzero().flatten().tolist()
    return bool(changed == [batch - 1])


def touching(model: nn.Module, arguments: Arguments, flow: Flow) -> str:
    """Return the first layer at which the first sample affects other samples; an empty string if there is none."""
    before = [flow.layout.to_rows(state) for state in run_through(model, arguments, flow, Edits()).states]
    if before[0].shape[0] < 2:
        return ""

    def change(tensor: Tensor) -> Tensor:
        if tuple(tensor.shape) != flow.shape:
            return tensor
        rows = flow.layout.to_rows(tensor).clone()
        noise = torch.randn(rows[0].shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
        rows[0] = noise.to(rows.dtype) * rows.pow(2).mean().sqrt().clamp_min(1e-6)
        return flow.layout.from_rows(rows, tensor)

    def edit(branch: Branch, state: Tensor, value: Tensor) -> Tensor | None:
        return None if branch.number else change(state + value if flow.skips else value)

    for edits in (Edits(enter=change), Edits(edit=edit)):
        after = [flow.layout.to_rows(state) for state in run_through(model, arguments, flow, edits).states]
        for layer, (changed, original) in enumerate(zip(after, before)):
            if layer and changed.shape == original.shape and bool(differs(changed[1:], original[1:]).any()):
                return f"layer {layer}"
    return ""


def differs(value: Tensor, reference: Tensor, near: float | None = None) -> Tensor:
    """Return where two tensors differ by more than rounding, or by more than `near` times the largest entry."""
    if not reference.numel():
        return torch.zeros_like(reference, dtype=torch.bool)
    size = reference.detach().nan_to_num(0.0, 0.0, 0.0).abs().max()
    near = NEAR.get(value.dtype, NEAR_FLOAT32) if near is None else near
    close = (value - reference).abs() <= near * size
    return ~(close | (value == reference) | (value.isnan() & reference.isnan()))


def others_any(apart: Tensor, axis: int) -> Tensor:
    """Return, for each index of one axis, whether any entry is true."""
    return apart.movedim(axis, 0).flatten(1).any(1)
