"""`residuals` of any module, measured on an example of its inputs."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor, nn

from rankfall.api.residuals import Residuals
from rankfall.rank.powers import reason_of
from rankfall.rank.residual import at_floor, relative_residual
from rankfall.streams.cuts import cut_by, states_of, variants_of
from rankfall.streams.examine import Examined, examine
from rankfall.streams.flow import Flow


def residuals_of_module(model: nn.Module, inputs: Any, *, norm: str, blocks: Any = None) -> dict[str, Residuals]:
    """Return variant -> relative residual by layer, as means over samples. With several streams the keys begin with the stream's name, as
    in "encoder transformer".
    """
    return residuals_of_examined(examine(model, inputs, blocks=blocks), norm)


def residuals_of_examined(found: Examined, norm: str) -> dict[str, Residuals]:
    """Return the residuals of every variant of every stream."""
    made = {}
    for flow in found.flows:
        for variant in variants_of(flow):
            states = states_of(found, flow, cut_by(variant))
            name = f"{flow.name} {variant.name}".strip()
            made[name] = by_layer(states, norm, "; ".join([*found.notes, describe_flow(flow)]).strip("; "))
    return made


def by_layer(states: list[Tensor], norm: str, note: str = "") -> Residuals:
    """Return the residuals of states (S, T, D) of layers 0 .. L."""
    values: list[float | None] = []
    floor, reasons = [], []
    for state in states:
        relative = relative_residual(state, norm)  # (S,)
        value = relative.mean().item()
        known = math.isfinite(value)
        values.append(value if known else None)
        floor.append(known and bool(at_floor(relative, state.dtype).double().mean() > 0.5))
        reasons.append("" if known else reason_of(state))
    return Residuals(values, floor, reasons, note)


def describe_flow(flow: Flow) -> str:
    """Return a note for readers of the numbers, which may be empty."""
    mixes = any(branch.mixes for branch in flow.branches)
    cut = f"it begins behind {flow.joins[0]}, which no skip passes" if flow.follows is not None and flow.joins else ""
    return "; ".join(filter(None, (*flow.missing, cut, "" if mixes else "no branch of it mixes tokens")))
