"""Scales at initialisation: branches relative to their state, the factor of the state, and the standard deviations of weights.

`residuals_of_changes` scales the initial weights of a stream: an intervention on one model, not a comparison of models. `weights` scales
every weight matrix and every embedding, as a larger `initializer_range` does. `layers` scales only the matrices of the layers, so that
the state that enters them stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from statistics import median

from torch import Tensor

from rankfall.census.gains import Gain, gains_of, is_drawn, is_within, weights_of
from rankfall.census.outcomes import FACTORS
from rankfall.check.interventions import multiplied
from rankfall.check.layer import finite_mean
from rankfall.rank.residual import relative_residual
from rankfall.streams.cuts import states_of
from rankfall.streams.editor import branch_values
from rankfall.streams.examine import Examined
from rankfall.streams.flow import CROSS, Flow

SAME = 1e-9  # relative deviation below which two states are proportional


def scales(examined: Examined, flow: Flow) -> tuple[list[float | None], list[float | None], float | None]:
    """Return the size of mixing and of tokenwise branches over that of the state by layer (0-based), None without such a branch.

    The third value is the factor of the state from one addition to the next, None if a norm stands between.
    """
    ratios: dict[tuple[int, bool], list[float]] = {}
    additions = branch_values(examined.model, examined.arguments, flow)
    for branch, state, value, _ in additions:
        if branch.kind != CROSS:
            ratios.setdefault((branch.layer, branch.mixes), []).append(float(size(value) / size(state)))
    between = [factor_of(before.total, after.state) for before, after in pairwise(additions)]
    factors = [factor for factor in between if factor is not None]

    def by_layer(mixes: bool) -> list[float | None]:
        layers = [ratios.get((layer, mixes)) for layer in range(1, flow.depth + 1)]
        return [sum(values) / len(values) if values else None for values in layers]

    return by_layer(True), by_layer(False), median(factors) if factors and flow.skips else None


def size(x: Tensor) -> Tensor:
    return x.double().pow(2).mean().sqrt().clamp_min(1e-300)


def factor_of(before: Tensor, after: Tensor) -> float | None:
    """Return c if after = c before, else None."""
    if before.numel() != after.numel():
        return None
    x, y = before.reshape(-1).double(), after.reshape(-1).double()
    square = x @ x
    if float(square) == 0:
        return None
    c = (x @ y) / square
    return float(c) if float((y - c * x).norm()) <= SAME * float(y.norm()) else None


def std_columns(examined: Examined, flow: Flow, released: Mapping[str, Gain] | None) -> dict[str, float | None]:
    """Return the initial stds of a stream's drawn matrices: median, least and most, and the median of std x sqrt(fan in).

    A matrix scaled to the released size counts with the released std; `as_released` is their share. `released` is None for a model of the
    released size. The result is empty without drawn matrices.
    """
    sizes, brought = [], 0
    gains = released or {}
    named = set(flow.layers) <= {name for name, _ in examined.model.named_modules()}  # else no module is a layer
    for name, gain in gains_of(examined.model).items():
        if gain.fan_in is not None and (is_within(name, flow.layers) or not named):
            sizes.append((gains.get(name, gain).std, gain.size))
            brought += name in gains
    if not sizes:
        return {}
    stds = [std for std, _ in sizes]
    return {
        "init_std": median(stds), "init_std_scaled": median(size for _, size in sizes), "init_std_least": min(stds),
        "init_std_most": max(stds), "as_released": None if released is None else brought / len(sizes),
    }  # fmt: skip


def residuals_of_changes(examined: Examined, flow: Flow) -> dict[str, list[float | None]]:
    """Return the residuals of layers 0 .. L under each of `CHANGES`."""
    chosen: dict[str, Callable[[str], bool]] = {
        "weights": lambda name: True,
        "layers": lambda name: is_within(name, flow.layers),
    }
    residuals = {}
    for scope, is_chosen in chosen.items():
        named = [(name, weight) for name, _, weight in weights_of(examined.model) if weight.dim() > 1]
        weights = [weight for name, weight in named if is_chosen(name) and is_drawn(weight.detach())]
        for name, factor in FACTORS.items():
            with multiplied(weights, factor):
                residuals[f"{scope}_{name}"] = [
                    finite_mean(relative_residual(state)) for state in states_of(examined, flow)
                ]
    return residuals
