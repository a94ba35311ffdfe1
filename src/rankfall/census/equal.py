"""What becomes of equal tokens, from the inputs on: numbers of tokens that are all the same, or pictures and sound that are constant."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rankfall.check.layer import StreamReport
from rankfall.check.orders import distinct_rows
from rankfall.errors import RankfallError
from rankfall.models.modules.examine import FAILURES, Examined
from rankfall.models.modules.flow import Flow
from rankfall.models.modules.given import Arguments
from rankfall.models.modules.passes import Edits, run_through

CONSTANT = "in the inputs, which are constant"


@dataclass(frozen=True)
class Equal:
    """Rows that differ in the first and in the last state, and where tokens were made equal; None where they cannot be."""

    first: int | None
    last: int | None
    where: str


def constant_inputs(examined: Examined, flow: Flow, report: StreamReport) -> Equal:
    """As the check has it where tokens are numbers. Where inputs are real numbers they are made constant, so that positions that are
    added before the first layer show."""
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
    first, last = (distinct_rows(flow.layout.rows(state)[0]) for state in (states[0], states[-1]))
    return Equal(first, last, CONSTANT)


def constant(arguments: Arguments) -> Arguments | None:
    """The same with one number, 0.5, in all pictures, sounds and states; None where there are no such inputs."""
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
