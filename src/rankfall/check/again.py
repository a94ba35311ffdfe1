"""Inputs with other tokens, or with equal ones: whether layers read the inputs again past the first state, as x + x0 does.

A pass whose first state is set equal says nothing of such a model, since its layers still read tokens that differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from rankfall.errors import RankfallError
from rankfall.streams.arguments import Arguments
from rankfall.streams.axes import differs
from rankfall.streams.edits import Edits
from rankfall.streams.examine import FAILURES, Examined
from rankfall.streams.flow import Flow
from rankfall.streams.passes import run_through

EQUAL = 1e-9
NO_TOKENS = ("mask", "position", "type")  # parts of names of arguments


def distinct_rows(rows: Tensor) -> int:
    """Return how many rows of (T, D) differ from all earlier rows by more than rounding."""
    size = float(rows.norm(dim=-1).max()) or 1.0
    near = torch.cdist(rows.double(), rows.double(), compute_mode="donot_use_mm_for_euclid_dist") <= EQUAL * size
    return int((~near.tril(-1).any(1)).sum())


def change_tokens(arguments: Arguments, shape: tuple[int, int], change: Callable[[Tensor], Tensor]) -> Arguments | None:
    """Return the arguments with token numbers (B, T) changed; None if there are none."""
    numbers = {
        name
        for name, one in named_inputs(arguments).items()
        if one.dtype in (torch.int64, torch.int32) and tuple(one.shape) == shape
    }
    return change_named(arguments, numbers, change)


def change_inputs(arguments: Arguments, shape: tuple[int, int], change: Callable[[Tensor], Tensor]) -> Arguments | None:
    """Return the arguments with tokens (B, T) changed, or vectors, pictures and sounds if there are no tokens; None if nothing is."""
    if (changed := change_tokens(arguments, shape, change)) is not None:
        return changed
    vectors = {name: one for name, one in named_inputs(arguments).items() if one.is_floating_point()}
    most = max((one.dim() for one in vectors.values()), default=0)
    least = min(most, 3)  # a tensor with fewer axes, beside one with features, may be a mask
    return change_named(arguments, {name for name, one in vectors.items() if one.dim() >= least}, change)


def named_inputs(arguments: Arguments) -> dict[str, Tensor]:
    """Return the tensors that may hold tokens or vectors, by keyword or by position."""
    named = [*((str(place), one) for place, one in enumerate(arguments.args)), *arguments.kwargs.items()]
    return {
        name: one
        for name, one in named
        if isinstance(one, Tensor) and not any(word in name for word in NO_TOKENS) and one.dim() > 1
    }


def change_named(arguments: Arguments, chosen: set[str], change: Callable[[Tensor], Tensor]) -> Arguments | None:
    """Return the arguments with the chosen ones changed; None if none is chosen."""
    if not chosen:
        return None
    args = tuple(change(one) if str(place) in chosen else one for place, one in enumerate(arguments.args))
    return Arguments(args, {name: change(one) if name in chosen else one for name, one in arguments.kwargs.items()})


def entered_by(flow: Flow, before: Arguments, after: Arguments) -> Flow:
    """Return the stream for changed arguments: if it begins with one of them, it begins with the changed one."""
    entry = flow.entry
    if entry is None or entry.operation is not None:
        return flow
    for one, other in zip(before.tensors(), after.tensors()):
        if one is entry.tensor:
            return replace(flow, entry=replace(entry, tensor=other))
    return flow


def turned(examined: Examined, flow: Flow, shape: tuple[int, int]) -> tuple[Arguments, Flow] | None:
    """Return the arguments with all tokens in reversed order, and the stream for them; None if there are no tokens to turn."""
    changed = change_inputs(examined.arguments, shape, lambda one: one.flip(tuple(range(1, one.dim()))))
    return None if changed is None else (changed, entered_by(flow, examined.arguments, changed))


def reads_again(examined: Examined, flow: Flow, shape: tuple[int, int], enter: Callable[[Tensor], Tensor]) -> bool:
    """Return whether states change with the inputs although the first state, which `enter` sets, does not."""
    other = turned(examined, flow, shape)
    if other is None:
        return False
    kept: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(enter(tensor))
        return kept[0]

    before = run_through(examined.model, examined.arguments, flow, Edits(enter=keep)).states
    edits = Edits(enter=lambda tensor: kept[0].clone() if kept[0].shape == tensor.shape else tensor)
    try:
        after = run_through(examined.model, other[0], other[1], edits).states
    except (*FAILURES, RankfallError):
        return False
    return any(one.shape == old.shape and bool(differs(one, old).any()) for one, old in zip(after, before))


def equal_inputs(examined: Examined, flow: Flow, shape: tuple[int, int]) -> tuple[Arguments, Flow] | None:
    """Return the arguments with the first token everywhere if the first state then has equal rows, and the stream for them."""

    def as_states(one: Tensor) -> Tensor:
        if flow.entry is None or tuple(one.shape) != flow.entry.shape:
            return one
        rows = flow.layout.to_rows(one)
        return flow.layout.from_rows(rows[:, :1].expand_as(rows), one).clone()

    for change in (as_states, *spreads()):
        changed = change_inputs(examined.arguments, shape, change)
        if changed is None:
            return None
        its_flow = entered_by(flow, examined.arguments, changed)
        try:
            first = run_through(examined.model, changed, its_flow, Edits()).states[0]
        except (*FAILURES, RankfallError):
            continue
        rows = flow.layout.to_rows(first)[0]
        if bool(rows.any()) and distinct_rows(rows) == 1:
            return changed, its_flow
    return None


def spreads() -> Iterator[Callable[[Tensor], Tensor]]:
    """Yield functions that repeat one place of an input: features last (B, ..., D), and first (B, C, ...)."""

    def places(one: Tensor, features: int) -> Tensor:
        kept = (0, features % one.dim()) if one.dim() > 2 else (0,)
        index = tuple(slice(None) if axis in kept else slice(0, 1) for axis in range(one.dim()))
        return one[index].expand_as(one).clone()

    yield lambda one: places(one, -1)
    yield lambda one: places(one, 1)
