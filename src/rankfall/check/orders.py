"""The order of contraction of each mixing branch, and the number of rows that equal tokens become, each in a few passes.

After every addition the state is replaced by nearly equal rows, mean + eps (state - mean), so that each branch reads such a state
whatever lies before it. The order p is the slope of log |res f| over log eps: 3 for softmax attention alone, 1 if differences pass in
proportion, 0 if equal rows become different. Positions inside a branch count; positions added to the state do not.
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
FLOOR = 1e-13  # relative to the branch's norm
EQUAL = 1e-9


def orders(examined: Examined, flow: Flow, layers: list[LayerReport]) -> str:
    """Fill in the orders. Return the reason if there are none, else ''."""
    if examined.dtype != torch.float64:
        return "float32 resolves no orders"
    found: dict[int, list[tuple[float, float]]] = {}
    totals = collect_sums(examined.model, examined.arguments, flow)
    for near in NEAR:

        def compare(branch: Branch, state: Tensor, value: Tensor, near: float = near) -> Tensor:
            if branch.mixes and flow.layout.to_rows(state).shape == flow.layout.to_rows(value).shape:
                rows = flow.layout.to_rows(value)
                found.setdefault(branch.number, []).append((float(rest(rows).norm()), float(rows.norm())))
            total = totals[branch.number]
            return flow.layout.from_rows(nearly_equal(flow.layout.to_rows(total), near), total)

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
    """Scale the differences between the rows of (S, T, D) by `near`."""
    return rows.mean(1, keepdim=True) + near * rest(rows)


def change_entry(flow: Flow, tensor: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    """Change the rows of the tensor that the stream begins with, or return it unchanged if its shape is not that of the states."""
    if flow.entry is None or tuple(tensor.shape) != flow.entry.shape:
        return tensor
    return flow.layout.from_rows(change(flow.layout.to_rows(tensor)), tensor)


def distinct(examined: Examined, flow: Flow, layers: list[LayerReport]) -> str:
    """Fill in the number of distinct rows for equal tokens. Return where the tokens were set equal, or '' if that is not possible."""
    first = run_through(examined.model, examined.arguments, flow, Edits()).states[0]
    samples, tokens = flow.layout.to_rows(first).shape[:2]
    equal = equal_tokens(examined.arguments, (samples, tokens))
    edits = Edits() if equal else Edits(enter=lambda x: change_entry(flow, x, lambda rows: rows[:, :1].expand_as(rows)))
    seen = run_through(examined.model, equal or examined.arguments, flow, edits)
    if not equal and distinct_rows(flow.layout.to_rows(seen.states[0])[0]) > 1:
        return ""
    for into, state in zip(layers, seen.states):
        into.distinct = distinct_rows(flow.layout.to_rows(state)[0])
    return "in the inputs" if equal else "in the state that enters the first layer"


def equal_tokens(arguments: Arguments, shape: tuple[int, int]) -> Arguments | None:
    """Return the inputs with the first token everywhere, if tokens are integers (B, T); else None."""
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
    """Return how many rows of (T, D) differ from all earlier rows by more than rounding."""
    size = float(rows.norm(dim=-1).max()) or 1.0
    near = torch.cdist(rows.double(), rows.double(), compute_mode="donot_use_mm_for_euclid_dist") <= EQUAL * size
    return int((~near.tril(-1).any(1)).sum())
