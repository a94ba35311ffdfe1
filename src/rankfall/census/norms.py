"""The norms of a stream, measured: modules that ignore the scale of their input, and their positions.

A module is a norm if it returns the same for inputs that are 7 times as large, and not the same for all rows. It is a layer norm if it also
ignores a constant added to all features. It stands before a branch if its input is the state, behind it if its output is the branch, and
after the addition if its input is the sum and its output the next state. Any other norm in a layer is inside the branch (of queries and
keys, or behind a first map). A norm that no module computes shows in `free`: branches that ignore the scale of the state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rankfall.census.gains import is_within
from rankfall.streams.editor import BranchValues, branch_values
from rankfall.streams.examine import FAILURES, Examined
from rankfall.streams.flow import Flow
from rankfall.streams.sized import LARGE, NEAR, TIMES, is_near, share_size_free

LAYER, RMS = "layer", "rms"
BEFORE, BEHIND, AFTER, INSIDE, NONE = (
    "before the branch", "behind the branch", "after the addition", "inside the branch", "none",
)  # fmt: skip


@dataclass
class Norms:
    """The norms of a stream."""

    kinds: list[str] = field(default_factory=list)  # layer, rms; the most frequent first
    classes: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    free: float | None = None  # share of the branches that ignore the scale of the state


class NormCall(NamedTuple):
    """One call of a module, with its input and output."""

    module: nn.Module
    x: Tensor
    y: Tensor


def norms(examined: Examined, flow: Flow) -> Norms:
    """Return the norms of a stream, from one pass with hooks and passes in which every branch reads a larger state."""
    calls, additions = watch_calls(examined, flow)
    kinds: dict[nn.Module, str | None] = {}
    for call in calls:
        if call.module not in kinds:
            kinds[call.module] = kind_of_norm(call)
    used = [(call, place_among(call, flow, additions)) for call in calls if kinds[call.module] is not None]
    modules = {module for name, module in examined.model.named_modules() if is_within(name, flow.layers)}
    inside = [call for call, place in used if place is None and call.module in modules]
    places = Counter(place for _, place in used if place is not None)
    counted = [call for call, place in used if place is not None] or inside
    places[INSIDE] += bool(inside)
    return Norms(
        by_count(kinds[call.module] or "" for call in counted),
        by_count(type(call.module).__name__ for call in counted),
        by_count(+places) or [NONE],
        share_size_free(examined, flow),
    )


def place_among(call: NormCall, flow: Flow, additions: list[BranchValues]) -> str | None:
    """Return the position of a norm at the first branch that it stands beside, or None."""
    for (_, state, value, total), following in zip_longest(additions, additions[1:]):
        if are_equal(call.y, value):
            return BEHIND
        if are_equal(call.x, total) and (flow.post if following is None else are_equal(call.y, following.state)):
            return AFTER
        if are_equal(call.x, state) and not are_equal(call.y, state):
            return BEFORE
    return None


def by_count(names: Iterable[str]) -> list[str]:
    return [name for name, _ in Counter(names).most_common()]


def watch_calls(examined: Examined, flow: Flow) -> tuple[list[NormCall], list[BranchValues]]:
    """Run a pass and return the calls that may be norms, and all additions."""
    calls: list[NormCall] = []

    def note_call(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        x = next((argument for argument in args if isinstance(argument, Tensor)), None)
        if isinstance(output, Tensor) and x is not None and x.shape == output.shape:
            calls.append(NormCall(module, x.detach().clone(), output.detach().clone()))

    # A norm has no submodules and no parameters beyond a scale and a shift per feature.
    leaves = [module for module in examined.model.modules() if not list(module.children())]
    modules = [module for module in leaves if all(parameter.dim() <= 1 for parameter in module.parameters())]
    with ExitStack() as hooks:
        for module in modules:
            hooks.enter_context(module.register_forward_hook(note_call))
        return calls, branch_values(examined.model, examined.arguments, flow)


def kind_of_norm(call: NormCall) -> str | None:
    """Return layer, rms, or None if the module of a call is no norm."""
    x = call.x
    if not x.is_floating_point() or x.dim() < 2:
        return None
    size = x.pow(2).mean().sqrt().clamp_min(1e-30)
    large = x * (LARGE / size)
    try:
        with torch.no_grad():
            y, scaled, moved = (call.module(value) for value in (large, TIMES * large, large + LARGE))
    except FAILURES:
        return None
    if not all(isinstance(value, Tensor) and value.shape == x.shape for value in (y, scaled, moved)):
        return None
    if not is_near(y, scaled) or float((y - y.flatten(0, -2)[0]).abs().max()) <= NEAR * float(y.abs().max()):
        return None
    return LAYER if is_near(y, moved) else RMS


def are_equal(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors have equal entries, whatever their shapes."""
    return a.numel() == b.numel() and bool(torch.equal(a.reshape(-1), b.reshape(-1)))
