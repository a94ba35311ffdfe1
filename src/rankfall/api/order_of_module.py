"""`order_of_contraction` of a module: an order for each branch of the recorded graph that mixes tokens."""

from __future__ import annotations

from typing import Any

import torch

from rankfall.api.streams import examine_given, name_of
from rankfall.check.slopes import slopes
from rankfall.errors import RankfallError
from rankfall.streams.arguments import keep_random_state


def orders_of_module(given: Any, inputs: Any, blocks: Any = None) -> dict[str, dict[str, Any]]:
    """Return layer and branch -> result of the fit, in order of computation."""
    examined = examine_given(given, inputs, blocks)
    found: dict[str, dict[str, Any]] = {}
    with keep_random_state(), torch.no_grad():
        for flow in examined.flows:
            for number, fitted in slopes(examined, flow).items():
                branch = flow.branches[number]
                place = flow.layers[branch.layer - 1] or f"layer {branch.layer}"
                name = name_of(flow.name if len(examined.flows) > 1 else "", f"{place} {branch.name}".strip())
                found[f"{name} ({number})" if name in found else name] = fitted
    if not found:
        raise RankfallError(f"{examined.name}: no branch of it mixes tokens, so none has an order of contraction")
    return found
