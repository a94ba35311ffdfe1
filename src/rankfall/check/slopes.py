"""The order of contraction of each mixing branch, as a slope over decades: residual of the output against that of the input.

After every addition the state is replaced by mean + eps (state - mean), so that each branch reads nearly equal rows whatever lies before
it, for eps from 10^-1.5 to 10^-7. Points are left out if a second pass, whose states differ by a few units of rounding, changes them by
a tenth.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rankfall.check.orders import change_entry, nearly_equal
from rankfall.rank.orders.slopes import FITTED, FLOOR, NEAR, fit, leave_order_empty, relative
from rankfall.rank.residual import residual
from rankfall.rank.rounding import NOISE, UNITS, relative_difference
from rankfall.streams.edits import Edits
from rankfall.streams.examine import Examined
from rankfall.streams.flow import Branch, Flow
from rankfall.streams.passes import collect_sums, run_through

Rows = dict[int, Tensor]  # branch -> (S, T, D)


def slopes(examined: Examined, flow: Flow) -> dict[int, dict[str, Any]]:
    """Return the fit of each mixing branch, with the samples as draws."""
    mixers = [branch.number for branch in flow.branches if branch.mixes]
    if examined.dtype != torch.float64:
        return {number: leave_order_empty("float32", "float32 resolves no orders") for number in mixers}
    totals = collect_sums(examined.model, examined.arguments, flow)
    logs: dict[int, list[Tensor]] = {number: [] for number in mixers}
    for near in 10.0**NEAR:
        plain, other = (nearly(examined, flow, totals, float(near), shake) for shake in (False, True))
        for number in mixers:
            if number in plain:
                logs[number].append(log10_clear(plain[number], other[number]))
    return {
        number: fit(NEAR, torch.stack(found, -1), "float64", last=FITTED)
        if len(found) == len(NEAR)
        else leave_order_empty("float64", "what it returns has another shape than the state")
        for number, found in logs.items()
    }


def log10_clear(rows: Tensor, other: Tensor) -> Tensor:
    """Return log10 of |R| / |X| by sample, -inf where it is rounding. (S, T, D) -> (S,)"""
    noise = relative_difference(residual(rows), residual(other), "frobenius") > NOISE
    finite = rows.isfinite().all(-1).all(-1)
    values = torch.where(finite & ~noise, relative(torch.where(finite[:, None, None], rows, 0.0)), 0.0)
    return torch.where(values > FLOOR, values.log10(), -torch.inf)


def nearly(examined: Examined, flow: Flow, totals: Rows, near: float, shake: bool) -> Rows:
    """Return the output of each mixing branch for nearly equal rows of its input."""
    found: Rows = {}
    generator = torch.Generator().manual_seed(0)

    def draw_rows(rows: Tensor) -> Tensor:
        rows = nearly_equal(rows, near)
        if not shake:
            return rows
        signs = 2 * torch.randint(2, rows.shape, generator=generator).to(rows) - 1
        return rows * (1 + UNITS * torch.finfo(rows.dtype).eps * signs)

    def compare(branch: Branch, state: Tensor, value: Tensor) -> Tensor:
        if branch.mixes and flow.layout.to_rows(state).shape == flow.layout.to_rows(value).shape:
            found.setdefault(branch.number, flow.layout.to_rows(value).clone())
        total = totals[branch.number]
        return flow.layout.from_rows(draw_rows(flow.layout.to_rows(total)), total)

    edits = Edits(edit=compare, enter=lambda tensor: change_entry(flow, tensor, draw_rows), partial=True)
    run_through(examined.model, examined.arguments, flow, edits)
    return found
