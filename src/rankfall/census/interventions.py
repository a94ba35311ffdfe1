"""The residuals of a stream whose initial weights are scaled. These are interventions on one model, not comparisons of models.

`weights` scales every weight matrix and every embedding, as a larger `initializer_range` does. `layers` scales only the matrices of the
layers, so that the state that enters them stays the same.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from rankfall.census.gains import is_drawn, is_within, weights_of
from rankfall.census.outcomes import FACTORS
from rankfall.check.interventions import multiplied
from rankfall.check.layer import finite_mean
from rankfall.rank.residual import relative_residual
from rankfall.streams.cuts import states_of
from rankfall.streams.examine import Examined
from rankfall.streams.flow import Flow


def residuals_of_changes(examined: Examined, flow: Flow) -> dict[str, list[float | None]]:
    """Return the residuals of layers 0 .. L under each of `CHANGES`."""
    chosen: dict[str, Callable[[str], bool]] = {
        "weights": lambda name: True,
        "layers": lambda name: is_within(name, flow.layers),
    }
    found = {}
    for what, is_chosen in chosen.items():
        weights = [weight for name, _, weight in weights_of(examined.model) if is_chosen(name) and is_matrix(weight)]
        for name, factor in FACTORS.items():
            with multiplied(weights, factor):
                found[f"{what}_{name}"] = [finite_mean(relative_residual(state)) for state in states_of(examined, flow)]
    return found


def is_matrix(weight: Tensor) -> bool:
    return weight.dim() > 1 and is_drawn(weight.detach())
