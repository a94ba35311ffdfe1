"""The order of contraction of each mixing branch, and the number of rows that equal tokens become, each in a few passes.

After every addition the state is replaced by nearly equal rows, mean + eps (state - mean), so that each branch reads such a state
whatever lies before it. The order p is the slope of log |res f| over log eps: 3 for softmax attention alone, 1 if differences pass in
proportion, 0 if equal rows become different. Positions inside a branch count; positions added to the state do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

import torch
from torch import Tensor

from rankfall.check.again import change_tokens, distinct_rows, equal_inputs, reads_again, turned
from rankfall.check.layer import LayerReport, StreamReport
from rankfall.errors import RankfallError
from rankfall.streams.arguments import Arguments
from rankfall.streams.edits import Edits
from rankfall.streams.examine import FAILURES, Examined
from rankfall.streams.flow import Branch, Flow
from rankfall.streams.passes import collect_sums, run_through

NEAR = (1e-2, 1e-3)
FLOOR = 1e-13  # relative to the branch's norm
SAME = 1e-3  # relative difference of two sizes of differences
IN_INPUTS = "in the inputs"
UNEQUAL = "tokens cannot be made equal: what the stream begins with has another shape"
AGAIN = "not known: the layers read the inputs again past the first state, and no inputs are known for which it has equal rows"


def orders(examined: Examined, flow: Flow, layers: list[LayerReport]) -> str:
    """Fill in the orders. Return the reason if there are none, else ''."""
    if examined.dtype != torch.float64:
        return "float32 resolves no orders"
    totals = collect_sums(examined.model, examined.arguments, flow)
    first = run_through(examined.model, examined.arguments, flow, Edits()).states[0]
    samples, tokens = flow.layout.to_rows(first).shape[:2]
    shape, kept = (samples, tokens), [first]

    def keep(tensor: Tensor) -> Tensor:
        kept[0] = tensor.detach().clone()
        return tensor

    run_through(examined.model, examined.arguments, flow, Edits(enter=keep))

    def sizes_near(arguments: Arguments, its_flow: Flow, near: float) -> dict[int, tuple[float, float]]:
        """Return (size of the differences, size) of each mixing branch's value."""
        found: dict[int, tuple[float, float]] = {}

        def compare(branch: Branch, state: Tensor, value: Tensor) -> Tensor:
            if branch.mixes and flow.layout.to_rows(state).shape == flow.layout.to_rows(value).shape:
                rows = flow.layout.to_rows(value)
                found.setdefault(branch.number, (float(rest(rows).norm()), float(rows.norm())))
            total = totals[branch.number]
            return flow.layout.from_rows(nearly_equal(flow.layout.to_rows(total), near), total)

        def enter(tensor: Tensor) -> Tensor:
            entry = kept[0] if kept[0].shape == tensor.shape else tensor
            return change_entry(flow, entry, lambda rows: nearly_equal(rows, near))

        run_through(examined.model, arguments, its_flow, Edits(edit=compare, enter=enter, partial=True))
        return found

    sizes = [sizes_near(examined.arguments, flow, near) for near in NEAR]
    again: set[int] = set()
    if (other := turned(examined, flow, shape)) is not None:
        with suppress(*FAILURES, RankfallError):
            seen = sizes_near(*other, NEAR[-1])
            again = {number for number, (apart, _) in sizes[-1].items() if differ(apart, seen.get(number, (apart,))[0])}
    if again:  # the branch reads the inputs past its state: these are set equal, too
        equal = equal_inputs(examined, flow, shape)
        of_equal = [sizes_near(*equal, near) for near in NEAR] if equal is not None else [{}, {}]
        sizes = [
            {**was, **{number: now.get(number, (0.0, 1.0)) for number in again}} for was, now in zip(sizes, of_equal)
        ]
    for number in sizes[0]:
        pair = [one[number] for one in sizes if number in one]
        if len(pair) == len(NEAR) and all(apart > FLOOR * whole for apart, whole in pair):
            branch = flow.branches[number]
            slope = math.log(pair[0][0] / pair[1][0]) / math.log(NEAR[0] / NEAR[1])
            layers[branch.layer].orders[branch.name] = slope
    if again and not any(layer.orders for layer in layers):
        return AGAIN
    return "" if sizes[0] else "no branch mixes tokens"


def differ(one: float, other: float) -> bool:
    return abs(one - other) > SAME * max(one, other)


def rest(rows: Tensor) -> Tensor:
    return rows - rows.mean(1, keepdim=True)


def nearly_equal(rows: Tensor, near: float) -> Tensor:
    """Scale the differences between the rows of (S, T, D) by `near`."""
    return rows.mean(1, keepdim=True) + near * rest(rows)


def change_entry(flow: Flow, tensor: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    """Change the rows of the tensor that the stream begins with, or return it unchanged if its shape is not that of the states."""
    if flow.entry is None or tuple(tensor.shape) != flow.entry.shape:
        return tensor
    return flow.layout.from_rows(change(flow.layout.to_rows(tensor)), tensor)


def distinct(examined: Examined, flow: Flow, report: StreamReport) -> str:
    """Fill in the number of distinct rows for equal tokens, and where the tokens were set equal. Return why that is not possible, or ''."""
    first = run_through(examined.model, examined.arguments, flow, Edits()).states[0]
    samples, tokens = flow.layout.to_rows(first).shape[:2]
    equal = change_tokens(examined.arguments, (samples, tokens), lambda one: one[:, :1].expand_as(one).clone())

    def enter(tensor: Tensor) -> Tensor:
        return change_entry(flow, tensor, lambda rows: rows[:, :1].expand_as(rows))

    def count_rows(arguments: Arguments, its_flow: Flow, edits: Edits) -> list[int]:
        states = run_through(examined.model, arguments, its_flow, edits).states
        return [distinct_rows(flow.layout.to_rows(state)[0]) for state in states]

    counts = count_rows(equal or examined.arguments, flow, Edits() if equal else Edits(enter=enter))
    report.equal_tokens = IN_INPUTS if equal else "in the state that enters the first layer"
    reason = UNEQUAL if counts[0] > 1 else ""
    if not equal and not reason and max(counts) > 1 and reads_again(examined, flow, (samples, tokens), enter):
        reason = AGAIN
    if not equal and reason:
        inputs = equal_inputs(examined, flow, (samples, tokens))
        report.equal_tokens = IN_INPUTS if inputs is not None else ""
        if inputs is None:
            return reason
        counts = count_rows(*inputs, Edits())
    for into, number in zip(report.layers, counts):
        into.distinct = number
    return ""
