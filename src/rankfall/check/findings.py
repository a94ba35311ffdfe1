"""Findings of a check: what makes its numbers cover only a part of a model, or mislead. Each makes the exit status 3."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from rankfall.check.kept import number
from rankfall.check.layer import StreamReport
from rankfall.streams.arguments import call_model
from rankfall.streams.examine import Examined
from rankfall.streams.flow import Flow
from rankfall.streams.frames import Call, Frames
from rankfall.streams.record import tensors_in


def add_findings(flow: Flow, flows: dict[str, Flow], reports: dict[str, StreamReport]) -> None:
    """Add the findings about what a stream lacks, and about its link to the stream before it."""
    report = reports[flow.name]
    report.findings += flow.missing
    if flow.touching:
        report.findings.append(
            f"samples touch each other: the first one changes others from {flow.touching} on, so that the numbers of a sample depend on "
            "those beside it; check one sample alone, and if the first axis of the inputs is no samples, give it one, inputs[None]"
        )
    report.part |= bool(flow.missing or flow.touching)
    before = reports.get(flow.follows) if flow.follows is not None else None
    if before is None:
        return
    report.part = before.part = True
    ends = [before.layers[-1].residual, report.layers[0].residual]
    if same_residual(*ends):  # the last layer forgets its last skip: its state lies behind the cut
        ends[0] = before.layers[-2].residual
    through = f"{', '.join(flow.joins[:4])}{' and others' * (len(flow.joins) > 4)}"
    report.findings.append(
        f"the stream is cut: no skip passes {through}, between {before.layers[-1].name} and {report.layers[1].name}, where the residual "
        f"goes from {number(ends[0])} to {number(ends[1])}"
    )
    while flow.follows is not None and flow.follows in reports:
        flow = flows[flow.follows]
    report.start = reports[flow.name].layers[0].residual


def same_residual(one: float | None, other: float | None) -> bool:
    """Return whether two residuals are those of the same state."""
    return one is not None and other is not None and math.isclose(one, other, rel_tol=1e-9)


def find_not_finite(examined: Examined, flow: Flow, states: Sequence[Tensor]) -> str:
    """Return a finding that names the first state that is not finite and the module that made it so; '' if all states are finite."""
    layer = next((number for number, state in enumerate(states) if not bool(state.isfinite().all())), None)
    if layer is None:
        return ""
    where = f"after layer {layer}, {flow.layers[layer - 1]}," if layer else "before the first layer"
    module = first_not_finite(examined)
    made = f"; the first module that returns such numbers is {module}" if module else ""
    return f"states are not finite: the first is the one {where} which has NaN or infinity{made}"


def first_not_finite(examined: Examined) -> str:
    """Return the first module call whose output is not finite, or '' if none is. A mask, of which -inf is a part, does not count."""
    made: list[Call] = []

    def look(call: Call, inputs: object, output: object) -> None:
        if not made and any(is_broken(tensor) for _, tensor in tensors_in(output)):
            made.append(call)

    with torch.no_grad(), Frames(examined.model, on_exit=look):
        call_model(examined.model, examined.arguments)
    return str(made[0]) if made else ""


def is_broken(tensor: Tensor) -> bool:
    """Return whether a tensor has NaN or +inf."""
    return tensor.is_floating_point() and bool((tensor.isnan() | tensor.isposinf()).any())
