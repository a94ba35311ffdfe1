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
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rankfall.measure.context import Context
from rankfall.measure.shared import in_float64
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
    one_layer,
    pick,
    refusal,
    slack,
    theorem,
    withhold,
)
from rankfall.rank.carried import Carried, carry
from rankfall.rank.centred.attention import Unknown
from rankfall.rank.centred.block import propagate
from rankfall.rank.centred.state import State
from rankfall.rank.powers import measurable
from rankfall.rank.residual import at_floor, matrix_norm, relative_residual, residual
from rankfall.rank.rounding import NOISE, relative_difference, shaken


@torch.no_grad()
def law(context: Context, *, samples: int = 4) -> list[dict[str, Any]]:
    """Return a row for each layer of each of the first test samples."""
    exact, inputs = in_float64(context, samples)
    single = copy.deepcopy(context.network).float()
    carried = list(carry(exact.maps(), exact.lift(inputs), strip_sentinels(exact)))
    direct = [
        [relative(state) for state in carried],
        plainly(single, inputs.float() if inputs.is_floating_point() else inputs),
    ]
    columns: list[dict[str, Any]]
    try:
        columns = centred_columns(exact, propagate(exact, inputs))
    except Unknown as reason:
        noise = noisy(exact, inputs, carried)
        columns = [plain_columns(value, floor, str(reason)) for value, floor in zip(direct[0], noise)]
    rows = []
    for layer, found in enumerate(columns):
        for name, values, dtype in (("float64", direct[0], torch.float64), ("float32", direct[1], torch.float32)):
            found |= {
                f"log10_{name}": values[layer].double().log10(),
                f"{name}_floor": at_floor(values[layer], dtype, found["log10_residual"])
                | values[layer].isnan()
                | found["floor"],
            }
        for sample in range(inputs.shape[1]):
            picked = {name: pick(value, sample) for name, value in found.items()}
            picked["value_reason"] = why = none_reason(found["log10_residual"][0, sample])
            if why == OUT:  # without a residual there are no bounds on it
                picked |= {name: None for name in (*ONE_LAYER, *ALL_LAYERS) if name in picked}
            rows.append({"layer": layer, "sample": sample} | withhold(picked))
    return rows


def strip_sentinels(network: Network) -> Callable[[Tensor], Tensor]:
    """Return a function that strips sentinels from states (K, B, T', D)."""
    return network.sentinels.strip if network.sentinels is not None else lambda x: x


def relative(state: Carried) -> Tensor:
    """Return the relative residual (K, B), NaN where the state is lost."""
    return state.mask_lost(relative_residual(state.unit))


def plainly(network: Network, inputs: Tensor) -> list[Tensor]:
    """Return relative residuals (K, B) by layer from a plain forward pass: NaN from where a state leaves the range of its format."""
    strip, lost, found = strip_sentinels(network), torch.zeros(()).bool(), []
    for x in map(strip, network.states(inputs)):
        lost = lost | ~measurable(x)
        found.append(torch.where(lost, torch.nan, relative_residual(x)))
    return found


def noisy(network: Network, inputs: Tensor, carried: list[Carried]) -> list[Tensor]:
    """Return where these residuals are rounding (K, B), by layer."""
    with shaken(network):
        other = map(strip_sentinels(network), network.states(inputs))
        # Where powers of two were factored out, only the floor is known: a state that has underflowed has no second pass.
        return [
            at_floor(relative(state), state.unit.dtype)
            | ((state.exponent == 0) & (relative_difference(residual(state.unit), residual(y), "composite") > NOISE))
            for state, y in zip(carried, other)
        ]


def centred_columns(network: Network, states: list[State]) -> list[dict[str, Any]]:
    """Return the table's columns by layer, each a text or a tensor (K, B)."""
    lost = ~measurable(tokens_of(states[0]))
    rows = [columns_of(states[0], lost) | leave_theory_empty("the input")]
    start = log10_norm(states[0].rest, "composite")  # (K, B)
    largest = start.new_full((2, *start.shape), -torch.inf)  # factors with and without gamma
    holds = torch.ones_like(start, dtype=torch.bool)
    stopped = ""
    for layer, (block, before, after) in enumerate(zip(network.blocks, states, states[1:]), 1):
        lost = lost | ~measurable(tokens_of(after))
        found = columns_of(after, lost) | {"exponent": torch.where(lost, torch.nan, exponent(block, before, after))}
        stopped = stopped or refusal(block, before)
        if stopped:
            rows.append(found | leave_theory_empty(stopped))
            continue
        terms = bounds(block, before)
        largest = torch.maximum(largest, torch.stack([terms.log10_factor, terms.log10_factor_no_gamma]))
        holds = holds & terms.condition
        found |= one_layer(terms, found["log10_absolute"]) | {"log10_lipschitz": terms.log10_lipschitz}
        rows.append(found | all_layers(largest, start, layer, found["log10_absolute"]) | {"condition_all": holds})
    return rows


def tokens_of(state: State) -> Tensor:
    return state.full()[..., state.tokens, :]


def columns_of(state: State, lost: Tensor) -> dict[str, Any]:
    """Return the residual's columns of one state.

    `lost` (K, B): where the row that tokens share is, or was, out of range, so that all later values are unknown.
    """
    absolute = torch.where(lost, torch.nan, log10_norm(state.rest, "composite"))
    size = matrix_norm(tokens_of(state), "composite").log10()
    return {
        "method": "centred",
        "method_reason": "",
        "log10_residual": absolute - size,
        "log10_absolute": absolute,
        "floor": torch.zeros_like(size, dtype=torch.bool),
        "exponent": None,
    }


def plain_columns(value: Tensor, floor: Tensor, reason: str) -> dict[str, Any]:
    return {
        "method": "float64",
        "method_reason": reason,
        "log10_residual": value.log10(),
        "floor": floor,
        "log10_absolute": None,
        "exponent": None,
    } | leave_theory_empty(reason)


def all_layers(largest: Tensor, start: Tensor, layer: int, log10_left: Tensor) -> dict[str, Any]:
    """Return the theorem's columns after `layer` layers, from the largest factors so far (2, K, B) and the input's residual (K, B)."""
    published, no_gamma = theorem(largest, start, layer)
    return {
        "log10_theorem": published,
        "theorem_slack": slack(published, log10_left),
        "log10_theorem_no_gamma": no_gamma,
        "theorem_no_gamma_slack": slack(no_gamma, log10_left),
        "theorem_contracts": 2 * start + largest[0] < 0,
    }
