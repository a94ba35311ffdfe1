"""The order of contraction of each mixing branch, from two passes (`orders`) or over decades (`slopes`).

After every addition the state is replaced by nearly equal rows, mean + eps (state - mean), so that each branch reads such a state
whatever lies before it. The order p is the slope of log |res f| over log eps: 3 for softmax attention alone, 1 if differences pass in
proportion, 0 if equal rows become different. Positions inside a branch count; positions added to the state do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rankfall.check.equal import READ_AGAIN, change_entry, equal_inputs, reverse_tokens
from rankfall.check.layer import LayerReport
from rankfall.errors import RankfallError
from rankfall.rank.orders.slopes import FITTED, NEAR, fit, leave_order_empty, relative
from rankfall.rank.orders.slopes import FLOOR as SLOPE_FLOOR
from rankfall.rank.residual import residual
from rankfall.rank.rounding import NOISE, UNITS, relative_difference
from rankfall.streams.arguments import Arguments
from rankfall.streams.editor import run_through
from rankfall.streams.examine import FAILURES, Examined
from rankfall.streams.flow import Branch, Edits, Flow

TWO = (1e-2, 1e-3)  # eps of the two passes: small enough for a power law, large enough for float64 to resolve eps^3
FLOOR = 1e-13  # relative to the branch's norm
SAME = 1e-3  # relative difference of two sizes of differences

Rows = dict[int, Tensor]  # mixing branch -> its value (S, T, D)
Change = Callable[[Tensor], Tensor]


@dataclass
class UntouchedPass:
    """The state after each addition of a pass without changes, its first state, and the tensor that the stream begins with."""

    totals: Rows
    first: Tensor
    entry: Tensor


def record_sums(examined: Examined, flow: Flow) -> UntouchedPass:
    """Run a pass without changes and record its sums."""
    totals: Rows = {}
    entered: list[Tensor] = []

    def keep(branch: Branch, state: Tensor, value: Tensor) -> None:
        totals[branch.number] = state + value if flow.skips else value.clone()

    def enter(tensor: Tensor) -> Tensor:
        entered[:] = [tensor.detach().clone()]
        return tensor

    first = run_through(examined.model, examined.arguments, flow, Edits(edit=keep, enter=enter)).states[0]
    return UntouchedPass(totals, first, entered[0] if entered else first)


def values_near(examined: Examined, call: tuple[Arguments, Flow], before: UntouchedPass, change: Change) -> Rows:
    """Return the value of each mixing branch in a pass of which `change` changes every state. A branch of another shape is left out."""
    arguments, flow = call
    values: Rows = {}

    def compare(branch: Branch, state: Tensor, value: Tensor) -> Tensor:
        rows = flow.layout.to_rows(value)
        if branch.mixes and flow.layout.to_rows(state).shape == rows.shape:
            values.setdefault(branch.number, rows.clone())
        total = before.totals[branch.number]
        return flow.layout.from_rows(change(flow.layout.to_rows(total)), total)

    def enter(tensor: Tensor) -> Tensor:
        return change_entry(flow, before.entry if before.entry.shape == tensor.shape else tensor, change)

    run_through(examined.model, arguments, flow, Edits(edit=compare, enter=enter, partial=True))
    return values


def nearly_equal(rows: Tensor, near: float) -> Tensor:
    """Scale the differences between the rows of (S, T, D) by `near`."""
    mean = rows.mean(1, keepdim=True)
    return mean + near * (rows - mean)


def orders(examined: Examined, flow: Flow, layers: list[LayerReport]) -> str:
    """Fill in the orders. Return the reason if there are none, else ''."""
    if examined.dtype != torch.float64:
        return "float32 resolves no orders"
    before = record_sums(examined, flow)
    samples, tokens = flow.layout.to_rows(before.first).shape[:2]

    def sizes_near(call: tuple[Arguments, Flow], near: float) -> dict[int, tuple[float, float]]:
        """Return (size of the differences, size) of each mixing branch's value."""
        values = values_near(examined, call, before, lambda rows: nearly_equal(rows, near))
        return {
            number: (float((rows - rows.mean(1, keepdim=True)).norm()), float(rows.norm()))
            for number, rows in values.items()
        }

    sizes = [sizes_near((examined.arguments, flow), near) for near in TWO]
    rereading: set[int] = set()
    if (reversed_call := reverse_tokens(examined, flow, (samples, tokens))) is not None:
        with suppress(*FAILURES, RankfallError):
            reversed_sizes = sizes_near(reversed_call, TWO[-1])
            pairs = {
                number: (spread, reversed_sizes.get(number, (spread,))[0]) for number, (spread, _) in sizes[-1].items()
            }
            rereading = {number for number, pair in pairs.items() if abs(pair[0] - pair[1]) > SAME * max(pair)}
    if rereading:  # the branch reads the inputs past its state: these are set equal, too
        equal = equal_inputs(examined, flow, (samples, tokens))
        equal_sizes = [sizes_near(equal, near) for near in TWO] if equal is not None else [{}, {}]
        sizes = [
            unequal | {number: by_branch.get(number, (0.0, 1.0)) for number in rereading}
            for unequal, by_branch in zip(sizes, equal_sizes)
        ]
    for number in sizes[0]:
        pair = [by_branch[number] for by_branch in sizes if number in by_branch]
        if len(pair) == len(TWO) and all(spread > FLOOR * norm for spread, norm in pair):
            branch = flow.branches[number]
            slope = math.log(pair[0][0] / pair[1][0]) / math.log(TWO[0] / TWO[1])
            layers[branch.layer].orders[branch.name] = slope
    if rereading and not any(layer.orders for layer in layers):
        return READ_AGAIN
    return "" if sizes[0] else "no branch mixes tokens"


def slopes(examined: Examined, flow: Flow) -> dict[int, dict[str, Any]]:
    """Return the fit of each mixing branch over eps from 10^-1.5 to 10^-7, with the samples as draws.

    A second pass has states that differ by a few units of rounding. A point is left out if it changes by a tenth in that pass.
    """
    mixers = [branch.number for branch in flow.branches if branch.mixes]
    if examined.dtype != torch.float64:
        return {number: leave_order_empty("float32", "float32 resolves no orders") for number in mixers}
    before = record_sums(examined, flow)
    logs: dict[int, list[Tensor]] = {number: [] for number in mixers}
    for near in 10.0**NEAR:
        generator = torch.Generator().manual_seed(0)

        def shake(rows: Tensor, near: float = float(near), generator: torch.Generator = generator) -> Tensor:
            rows = nearly_equal(rows, near)
            signs = 2 * torch.randint(2, rows.shape, generator=generator).to(rows) - 1
            return rows * (1 + UNITS * torch.finfo(rows.dtype).eps * signs)

        plain, other = (
            values_near(examined, (examined.arguments, flow), before, change)
            for change in (lambda rows, near=float(near): nearly_equal(rows, near), shake)
        )
        for number in mixers:
            if number in plain:
                logs[number].append(log10_clear(plain[number], other[number]))
    return {
        number: fit(NEAR, torch.stack(points, -1), "float64", last=FITTED)
        if len(points) == len(NEAR)
        else leave_order_empty("float64", "what it returns has another shape than the state")
        for number, points in logs.items()
    }


def log10_clear(rows: Tensor, other: Tensor) -> Tensor:
    """Return log10 of |R| / |X| by sample, -inf where it is rounding. (S, T, D) -> (S,)"""
    noise = relative_difference(residual(rows), residual(other), "frobenius") > NOISE
    finite = rows.isfinite().all(-1).all(-1)
    values = torch.where(finite & ~noise, relative(torch.where(finite[:, None, None], rows, 0.0)), 0.0)
    return torch.where(values > SLOPE_FLOOR, values.log10(), -torch.inf)
