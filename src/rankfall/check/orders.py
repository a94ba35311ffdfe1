"""The order of contraction of each mixing branch, from two passes (`orders`) or over decades (`slopes`).

After every addition the state is replaced by nearly equal rows, mean + eps (state - mean), so that each branch reads such a state
whatever lies before it. The order p is the slope of log |res f| over log eps: 3 for softmax attention alone, 1 if differences pass in
proportion, 0 if equal rows become different. Positions inside a branch count; positions added to the state do not.
"""

import math
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch import Tensor

from rankfall.check.equal import READ_AGAIN, equal_inputs
from rankfall.check.layer import LayerReport
from rankfall.check.passes import Change, HeldStates, reverse_tokens
from rankfall.errors import RankfallError
from rankfall.rank.orders.slopes import FITTED, NEAR, fit, leave_order_empty, relative
from rankfall.rank.orders.slopes import FLOOR as SLOPE_FLOOR
from rankfall.rank.residual import residual
from rankfall.rank.rounding import NOISE, UNITS, relative_difference
from rankfall.streams.arguments import Arguments
from rankfall.streams.examine import FAILURES, Examined
from rankfall.streams.flow import Branch, Flow

TWO = (1e-2, 1e-3)  # eps of the two passes: small enough for a power law, large enough for float64 to resolve eps^3
FLOOR = 1e-13  # relative to the branch's norm
SAME = 1e-3  # relative difference of two sizes of differences

Rows = dict[int, Tensor]  # mixing branch -> its value (S, T, D)


def values_near(held: HeldStates, change: Change, arguments: Arguments | None = None) -> Rows:
    """Return the value of each mixing branch in a pass of which `change` changes every state. A branch of another shape is left out."""
    to_rows = held.flow.layout.to_rows
    values: Rows = {}

    def look(branch: Branch, state: Tensor, value: Tensor) -> None:
        if branch.mixes and to_rows(state).shape == to_rows(value).shape:
            values.setdefault(branch.number, to_rows(value).clone())

    held.run(change, look, arguments)
    return values


def nearly_equal(rows: Tensor, near: float) -> Tensor:
    """Scale the differences between the rows of (S, T, D) by `near`."""
    mean = rows.mean(1, keepdim=True)
    return mean + near * (rows - mean)


def orders(examined: Examined, flow: Flow, layers: list[LayerReport]) -> str:
    """Fill in the orders. Return the reason if there are none, else ''."""
    if examined.dtype != torch.float64:
        return "float32 resolves no orders"
    held = HeldStates(examined, flow)

    def sizes_near(near: float, arguments: Arguments | None = None) -> dict[int, tuple[float, float]]:
        """Return (size of the differences, size) of each mixing branch's value."""
        values = values_near(held, partial(nearly_equal, near=near), arguments)
        apart = {number: rows - rows.mean(1, keepdim=True) for number, rows in values.items()}
        return {number: (float(apart[number].norm()), float(rows.norm())) for number, rows in values.items()}

    sizes = [sizes_near(near) for near in TWO]
    rereading: set[int] = set()
    if (reversed_call := reverse_tokens(examined.arguments, held.shape)) is not None:
        with suppress(*FAILURES, RankfallError):
            reversed_sizes = sizes_near(TWO[-1], reversed_call)
            pairs = {
                number: (spread, reversed_sizes.get(number, (spread,))[0]) for number, (spread, _) in sizes[-1].items()
            }
            rereading = {number for number, pair in pairs.items() if abs(pair[0] - pair[1]) > SAME * max(pair)}
    if rereading:  # the branch reads the inputs past its state: these are set equal, too
        equal = equal_inputs(examined, flow, held.shape)
        equal_sizes = [sizes_near(near, equal) for near in TWO] if equal is not None else [{}, {}]
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
    held = HeldStates(examined, flow)
    logs: dict[int, list[Tensor]] = {number: [] for number in mixers}
    for near in 10.0**NEAR:
        generator = torch.Generator().manual_seed(0)

        def shake(rows: Tensor, near: float = float(near), generator: torch.Generator = generator) -> Tensor:
            rows = nearly_equal(rows, near)
            signs = 2 * torch.randint(2, rows.shape, generator=generator).to(rows) - 1
            return rows * (1 + UNITS * torch.finfo(rows.dtype).eps * signs)

        plain, other = values_near(held, partial(nearly_equal, near=float(near))), values_near(held, shake)
        for number in mixers:
            if number in plain:
                logs[number].append(log10_clear(plain[number], other[number]))
    empty = leave_order_empty("float64", "what it returns has another shape than the state")
    full = {number: torch.stack(points, -1) for number, points in logs.items() if len(points) == len(NEAR)}
    return {number: fit(NEAR, full[number], "float64", last=FITTED) if number in full else {**empty} for number in logs}


def log10_clear(rows: Tensor, other: Tensor) -> Tensor:
    """Return log10 of |R| / |X| by sample, -inf where it is rounding. (S, T, D) -> (S,)"""
    noise = relative_difference(residual(rows), residual(other), "frobenius") > NOISE
    finite = rows.isfinite().all(-1).all(-1)
    values = torch.where(finite & ~noise, relative(torch.where(finite[:, None, None], rows, 0.0)), 0.0)
    return torch.where(values > SLOPE_FLOOR, values.log10(), -torch.inf)
