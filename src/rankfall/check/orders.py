"""The order of contraction of each mixing branch, and what becomes of equal tokens, each in a few passes.

After every addition the state is made nearly equal rows, mean + eps (state - mean), so that each branch reads such a state whatever
lies before it. p is the slope of log |res f| over log eps: 3 for softmax attention alone, 1 where what differs is passed on in
proportion, 0 where equal rows come out different. Positions inside a branch count, those that were added to the state do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from rankfall.check.layer import LayerReport
from rankfall.models.modules.examine import Examined
from rankfall.models.modules.flow import Branch, Flow
from rankfall.models.modules.given import Arguments
from rankfall.models.modules.passes import Edits, collect_sums, run_through

NEAR = (1e-2, 1e-3)
FLOOR = 1e-13  # of the branch's size
EQUAL = 1e-9


def orders(examined: Examined, flow: Flow, layers: list[LayerReport]) -> str:
    """Fill in the orders. Returns why there are none, or nothing."""
    if examined.dtype != torch.float64:
        return "float32 resolves no orders"
    found: dict[int, list[tuple[float, float]]] = {}
    totals = collect_sums(examined.model, examined.arguments, flow)
    for near in NEAR:

        def compare(branch: Branch, state: Tensor, value: Tensor, near: float = near) -> Tensor:
            if branch.mixes and flow.layout.rows(state).shape == flow.layout.rows(value).shape:
                rows = flow.layout.rows(value)
                found.setdefault(branch.number, []).append((float(rest(rows).norm()), float(rows.norm())))
            total = totals[branch.number]
            return flow.layout.like(nearly_equal(flow.layout.rows(total), near), total)

        def enter(tensor: Tensor, near: float = near) -> Tensor:
            return change_entry(flow, tensor, lambda rows: nearly_equal(rows, near))

        run_through(examined.model, examined.arguments, flow, Edits(edit=compare, enter=enter, partial=True))
    for number, sizes in found.items():
        if len(sizes) == len(NEAR) and all(rest_ > FLOOR * whole for rest_, whole in sizes):
            branch = flow.branches[number]
            slope = math.log(sizes[0][0] / sizes[1][0]) / math.log(NEAR[0] / NEAR[1])
            layers[branch.layer].orders[branch.name] = slope
    return "" if found else "no branch mixes tokens"


def rest(rows: Tensor) -> Tensor:
    return rows - rows.mean(1, keepdim=True)


def nearly_equal(rows: Tensor, near: float) -> Tensor:
    """(S, T, D) with what differs made `near` times as large."""
    return rows.mean(1, keepdim=True) + near * rest(rows)


def change_entry(flow: Flow, tensor: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    """The tensor that the stream begins with, changed as rows; as it is where it has another shape than the states."""
    if flow.entry is None or tuple(tensor.shape) != flow.entry.shape:
        return tensor
    return flow.layout.like(change(flow.layout.rows(tensor)), tensor)


def distinct(examined: Examined, flow: Flow, layers: list[LayerReport]) -> str:
    """Fill in how many rows differ where all tokens are equal. Returns where they were made equal; nothing where they cannot be."""
    first = run_through(examined.model, examined.arguments, flow, Edits()).states[0]
    samples, tokens = flow.layout.rows(first).shape[:2]
    equal = equal_tokens(examined.arguments, (samples, tokens))
    edits = Edits() if equal else Edits(enter=lambda x: change_entry(flow, x, lambda rows: rows[:, :1].expand_as(rows)))
    seen = run_through(examined.model, equal or examined.arguments, flow, edits)
    if not equal and distinct_rows(flow.layout.rows(seen.states[0])[0]) > 1:
        return ""
    for into, state in zip(layers, seen.states):
        into.distinct = distinct_rows(flow.layout.rows(state)[0])
    return "in the inputs" if equal else "in the state that enters the first layer"


def equal_tokens(arguments: Arguments, shape: tuple[int, int]) -> Arguments | None:
    """The same inputs with the first token everywhere, where tokens are numbers (B, T)."""
    changed = 0

    def change(value: object, name: str = "") -> object:
        nonlocal changed
        if (
            not isinstance(value, Tensor)
            or value.dtype not in (torch.int64, torch.int32)
            or tuple(value.shape) != shape
        ):
            return value
        if any(word in name for word in ("mask", "position", "type")):
            return value
        changed += 1
        return value[:, :1].expand_as(value).clone()

    args = tuple(change(one) for one in arguments.args)
    kwargs = {name: change(one, name) for name, one in arguments.kwargs.items()}
    return Arguments(args, kwargs) if changed else None


def distinct_rows(rows: Tensor) -> int:
    """(T, D): how many rows there are that are not, but for rounding, an earlier one."""
    size = float(rows.norm(dim=-1).max()) or 1.0
    near = torch.cdist(rows.double(), rows.double(), compute_mode="donot_use_mm_for_euclid_dist") <= EQUAL * size
    return int((~near.tril(-1).any(1)).sum())
