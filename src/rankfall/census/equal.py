"""The number of distinct rows that equal inputs become: equal token numbers, or constant pictures and sound."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rankfall.check.layer import StreamReport
from rankfall.check.orders import distinct_rows
from rankfall.errors import RankfallError
from rankfall.streams.arguments import Arguments
from rankfall.streams.edits import Edits
from rankfall.streams.examine import FAILURES, Examined
from rankfall.streams.flow import Flow
from rankfall.streams.passes import run_through

CONSTANT = "in the inputs, which are constant"


@dataclass(frozen=True)
class Equal:
    """Numbers of distinct rows in the first and last state, None if tokens cannot be set equal, and where they were set equal."""

    first: int | None
    last: int | None
    where: str


def constant_inputs(examined: Examined, flow: Flow, report: StreamReport) -> Equal:
    """Return the check's result if the inputs are token numbers. Otherwise make floating-point inputs constant.

    Constant inputs also show positions that are added before the first layer.
    """
    checked = Equal(report.layers[0].distinct, report.layers[-1].distinct, report.equal_tokens)
    if report.equal_tokens == "in the inputs":
        return checked
    inputs = constant(examined.arguments)
    if inputs is None:
        return checked
    try:
        with torch.no_grad():
            states = run_through(examined.model, inputs, flow, Edits()).states
    except (*FAILURES, RankfallError):
        return checked
    first, last = (distinct_rows(flow.layout.to_rows(state)[0]) for state in (states[0], states[-1]))
    return Equal(first, last, CONSTANT)


def constant(arguments: Arguments) -> Arguments | None:
    """Return the arguments with 0.5 in all pictures, sounds and states, or None if there are no such inputs."""
    changed = 0

    def change(value: object, name: str = "") -> object:
        nonlocal changed
        if not isinstance(value, Tensor) or not value.is_floating_point() or "mask" in name:
            return value
        changed += 1
        return torch.full_like(value, 0.5)

    args = tuple(change(one) for one in arguments.args)
    kwargs = {name: change(one, name) for name, one in arguments.kwargs.items()}
    return Arguments(args, kwargs) if changed else None
