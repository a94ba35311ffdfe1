"""Test of which branches depend on the scale of their input state. None does behind a norm of the stream."""

from __future__ import annotations

from torch import Tensor

from rankfall.streams.editor import branch_values, run_through
from rankfall.streams.examine import FAILURES, Examined
from rankfall.streams.flow import Branch, Edits, Flow
from rankfall.streams.mixing import fill_zero_weights

LARGE = 1e3  # factor of the state: far above the eps of any norm
TIMES = 7.0  # factor between the two states that are compared
NEAR = 1e-3  # relative difference of values that are equal up to rounding
SMALL = 1e-3  # RMS; a smaller state, times 1,000, may still be below the eps of a norm


def share_size_free(examined: Examined, flow: Flow) -> float | None:
    """Return the share of branches whose value stays the same if their input state is 7 times as large; None if all return zero.

    Branches that return zero do not count. If all do, they are tested with random weights in place of zeros.
    """
    totals = {one.branch.number: one.total for one in branch_values(examined.model, examined.arguments, flow)}
    pairs = pairs_of(examined, flow, totals)
    if pairs and not any(bool(value.any()) for value, _ in pairs):
        with fill_zero_weights(examined.model):
            pairs = pairs_of(examined, flow, totals)
    nonzero = [pair for pair in pairs if bool(pair[0].any())]
    return sum(is_near(*pair) for pair in nonzero) / len(nonzero) if nonzero else None


def pairs_of(examined: Examined, flow: Flow, totals: dict[int, Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Return each branch's values at both scales; an empty list if the model fails at these scales."""
    values: dict[int, list[Tensor]] = {}
    for scale in (LARGE, TIMES * LARGE):

        def keep(branch: Branch, state: Tensor, value: Tensor, scale: float = scale) -> Tensor:
            values.setdefault(branch.number, []).append(value.detach().clone())
            return scale * sizeable(totals[branch.number])

        def enter(tensor: Tensor, scale: float = scale) -> Tensor:
            return scale * sizeable(tensor)

        try:
            run_through(examined.model, examined.arguments, flow, Edits(edit=keep, enter=enter, partial=True))
        except FAILURES:
            return []
    return [(pair[0], pair[1]) for pair in values.values() if len(pair) == 2 and pair[0].shape == pair[1].shape]


def sizeable(state: Tensor) -> Tensor:
    """Return a state, scaled to mean square 1 if it is very small."""
    size = float(state.detach().double().pow(2).mean().sqrt())
    return state / size if 0 < size < SMALL else state


def has_norm(examined: Examined, flow: Flow) -> bool:
    """Return whether the stream has a norm: between an addition and the next state, or before a branch. True if the test fails."""
    return flow.post or share_size_free(examined, flow) != 0


def is_near(first: Tensor, second: Tensor) -> bool:
    return bool((first - second).abs().max() <= NEAR * first.abs().max())
