"""The order of contraction of each branch that mixes tokens, as a slope over decades: res of the branch's output against how unequal its
input's rows are.

After every addition the state is made mean + eps (state - mean), so that each branch reads nearly equal rows whatever lies before it, for
eps from 10^-1.5 to 10^-7. What a second pass, whose states differ by a few units of rounding, changes by a tenth is left out.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rankfall.check.orders import change_entry, nearly_equal
from rankfall.models.modules.examine import Examined
from rankfall.models.modules.flow import Branch, Flow
from rankfall.models.modules.passes import Edits, collect_sums, run_through
from rankfall.rank.orders.fit import fit, leave_order_empty
from rankfall.rank.orders.slopes import FITTED, FLOOR, NEAR, relative
from rankfall.rank.residual import residual
from rankfall.rank.rounding import NOISE, UNITS, relative_difference

Rows = dict[int, Tensor]  # branch -> (S, T, D)


def slopes(examined: Examined, flow: Flow) -> dict[int, dict[str, Any]]:
    """The fit of each mixing branch; samples are its draws."""
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
    """log10 of |R| / |X| by sample, -inf where it is rounding. (S, T, D) -> (S,)"""
    noise = relative_difference(residual(rows), residual(other), "frobenius") > NOISE
    finite = rows.isfinite().all(-1).all(-1)
    values = torch.where(finite & ~noise, relative(torch.where(finite[:, None, None], rows, 0.0)), 0.0)
    return torch.where(values > FLOOR, values.log10(), -torch.inf)


def nearly(examined: Examined, flow: Flow, totals: Rows, near: float, shake: bool) -> Rows:
    """What each mixing branch returns where all that it reads is nearly equal."""
    found: Rows = {}
    generator = torch.Generator().manual_seed(0)

    def draw_rows(rows: Tensor) -> Tensor:
        rows = nearly_equal(rows, near)
        if not shake:
            return rows
        signs = 2 * torch.randint(2, rows.shape, generator=generator).to(rows) - 1
        return rows * (1 + UNITS * torch.finfo(rows.dtype).eps * signs)

    def compare(branch: Branch, state: Tensor, value: Tensor) -> Tensor:
        if branch.mixes and flow.layout.rows(state).shape == flow.layout.rows(value).shape:
            found.setdefault(branch.number, flow.layout.rows(value).clone())
        total = totals[branch.number]
        return flow.layout.like(draw_rows(flow.layout.rows(total)), total)

    edits = Edits(edit=compare, enter=lambda tensor: change_entry(flow, tensor, draw_rows), partial=True)
    run_through(examined.model, examined.arguments, flow, edits)
    return found
