"""The law of rank collapse without a floor: log residual by layer at any depth, its local exponent, and the theorems' bounds.

The residual is relative, |res(X)| / |X| in the composite norm about the token mean, by centred propagation in float64 (`centred/`). The
local exponent of a layer is d log|res out| / d log|res in|: how much the residual after the layer changes when the rows before it are
slightly more similar. It is 3 where the cubic law holds, 1 where decay is exponential, and 0 where rows come out different however
similar they are at the input. The residual from plain float64 and float32 passes shows where their floors are. A network without a known
centred form is measured by the plain float64 pass, with the reason in `method_reason`. `floor` is true where the value is rounding:
below the resolution of float64, or changed by a tenth in a pass that rounds differently. `value_reason` says why there is no residual:
rows are identical, or the state has left the range of float64 even after powers of two were factored out (`rank/carried.py`).

A bound has a value only where its proof applies: for a layer, where scores spread over at most 1.256 within a row (`condition`); over
all layers, where they do so in every layer (`condition_all`). Elsewhere it is null and `theory_reason` says why. Its slack is its right
side divided by its left side, in decades. The published bounds are about the residual from the minimiser of the norm. The measured
residual is about the token mean and up to 2 (1 - 1/T) times as large for T tokens; `log10_proven` includes this factor.
"""

import copy
from functools import partial
from typing import Any

import torch
from torch import Tensor

from rankfall.measure.context import Context
from rankfall.measure.shared import in_float64, strip_sentinels
from rankfall.nets.network import Network
from rankfall.rank.bounds import (
    ALL_LAYERS,
    ONE_LAYER,
    OUT,
    bounds,
    exponent,
    leave_theory_empty,
    log10_norm,
    none_reason,
    pick,
    refusal,
    slack,
    theorem,
    withhold,
)
from rankfall.rank.carried import Carried, carry
from rankfall.rank.centred.attention import Unknown, propagate
from rankfall.rank.centred.scaled import State
from rankfall.rank.powers import measurable
from rankfall.rank.residual import at_floor, matrix_norm, relative_residual, residual
from rankfall.rank.rounding import NOISE, relative_difference, shaken


@torch.no_grad()
def law(context: Context, *, samples: int = 4) -> list[dict[str, Any]]:
    """Return a row for each layer of each of the first test samples."""
    exact, inputs = in_float64(context, samples)
    single = copy.deepcopy(context.network).float()
    carried = list(carry(exact.maps(), exact.lift(inputs), partial(strip_sentinels, exact)))
    direct = [state.mask_lost(relative_residual(state.unit)) for state in carried]  # (K, B), NaN where it is lost
    floats = plain_residuals(single, inputs.float() if inputs.is_floating_point() else inputs)
    columns: list[dict[str, Any]]
    try:
        columns = centred_columns(exact, propagate(exact, inputs))
    except Unknown as error:
        about = {"method": "float64", "method_reason": str(error)}
        theory = {"log10_absolute": None, "exponent": None} | leave_theory_empty(str(error))
        columns = [
            about | {"log10_residual": value.log10(), "floor": floor} | theory
            for value, floor in zip(direct, is_rounding(exact, inputs, carried, direct))
        ]
    rows = []
    for layer, values in enumerate(columns):
        for name, value in (("float64", direct[layer]), ("float32", floats[layer])):
            dtype = getattr(torch, name)
            floor = at_floor(value, dtype, values["log10_residual"]) | value.isnan() | values["floor"]
            values |= {f"log10_{name}": value.double().log10(), f"{name}_floor": floor}
        for sample in range(inputs.shape[1]):
            picked = {name: pick(value, sample) for name, value in values.items()}
            picked["value_reason"] = reason = none_reason(values["log10_residual"][0, sample])
            if reason == OUT:  # without a residual there are no bounds on it
                picked |= {name: None for name in (*ONE_LAYER, *ALL_LAYERS) if name in picked}
            rows.append({"layer": layer, "sample": sample} | withhold(picked))
    return rows


def plain_residuals(network: Network, inputs: Tensor) -> list[Tensor]:
    """Return relative residuals (K, B) by layer from a plain forward pass: NaN from where a state leaves the range of its format."""
    lost, residuals = torch.zeros(()).bool(), []
    for x in map(partial(strip_sentinels, network), network.states(inputs)):
        lost = lost | ~measurable(x)
        residuals.append(torch.where(lost, torch.nan, relative_residual(x)))
    return residuals


def is_rounding(network: Network, inputs: Tensor, carried: list[Carried], direct: list[Tensor]) -> list[Tensor]:
    """Return where the relative residuals `direct` of states are rounding (K, B), by layer."""
    with shaken(network):
        other = map(partial(strip_sentinels, network), network.states(inputs))
        # Where powers of two were factored out, only the floor is known: a state that has underflowed has no second pass.
        return [
            at_floor(value, state.unit.dtype)
            | ((state.exponent == 0) & (relative_difference(residual(state.unit), residual(y), "composite") > NOISE))
            for state, value, y in zip(carried, direct, other)
        ]


def centred_columns(network: Network, states: list[State]) -> list[dict[str, Any]]:
    """Return the table's columns by layer, each a text or a tensor (K, B)."""
    start = log10_norm(states[0].rest, "composite")  # (K, B)
    largest = start.new_full((2, *start.shape), -torch.inf)  # factors with and without gamma, the largest up to a layer
    holds = torch.ones_like(start, dtype=torch.bool)
    lost = ~holds  # where the row that tokens share is, or was, out of range, so that all later values are unknown
    rows, stopped = [], ""
    for layer, after in enumerate(states):
        tokens = after.full()[..., after.tokens, :]
        lost = lost | ~measurable(tokens)
        absolute = torch.where(lost, torch.nan, log10_norm(after.rest, "composite"))
        size = matrix_norm(tokens, "composite").log10()
        columns: dict[str, Any] = {"method": "centred", "method_reason": "", "log10_residual": absolute - size}
        columns |= {"log10_absolute": absolute, "floor": torch.zeros_like(size, dtype=torch.bool), "exponent": None}
        rows.append(columns)
        if not layer:
            columns |= leave_theory_empty("the input")
            continue
        block, before = network.blocks[layer - 1], states[layer - 1]
        columns["exponent"] = torch.where(lost, torch.nan, exponent(block, before, after))
        stopped = stopped or refusal(block, before)
        if stopped:
            columns |= leave_theory_empty(stopped)
            continue
        of_layer, factor_no_gamma, log_lipschitz = bounds(block, before, absolute)
        largest = torch.maximum(largest, torch.stack([of_layer["log10_factor"], factor_no_gamma]))
        holds = holds & of_layer["condition"]
        published, no_gamma = theorem(largest, start, layer)
        columns |= of_layer | {
            "log10_lipschitz": log_lipschitz,
            "condition_all": holds,
            "log10_theorem": published,
            "theorem_slack": slack(published, absolute),
            "log10_theorem_no_gamma": no_gamma,
            "theorem_no_gamma_slack": slack(no_gamma, absolute),
            "theorem_contracts": 2 * start + largest[0] < 0,
        }
    return rows
