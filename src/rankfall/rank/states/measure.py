"""Sizes and directions of each layer's states: root mean square, mean cosine of tokens, two stable ranks, and the residual.

Each quantity is computed in float64 over the first test samples, for the states that enter or leave a block, sentinels included. It is
computed again without the first token, which may be a sink for attention, without the largest channels, which dominate cosines and ranks
of pretrained models, and without both. States beyond the range of float64 are carried by powers of two where their layer allows that
(`rank/carried.py`). Otherwise there are no values from there on, and a reason.
"""

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rankfall.measure.context import Context, Rows
from rankfall.measure.shared import in_float64, mean_of_samples
from rankfall.nets.network import Network
from rankfall.rank.carried import Carried, begin, carry_twice
from rankfall.rank.powers import TOO_SMALL, exponent_of, reason_of, unit
from rankfall.rank.residual import at_floor, relative_residual, residual, stable_ranks
from rankfall.rank.rounding import NOISE, relative_difference, shaken
from rankfall.rank.spectrum import largest_channels, mean_cosine, root_mean_square

COST = {"seconds": 0.2, "megabytes": 100.0}
QUANTITIES = ("norm", "cosine", "stable_rank", "stable_rank_gram", "residual")
ONE_TOKEN = "one token is no pair: nothing can differ between tokens"
ZERO_TOKEN = "a token is a vector of zeros, which has no direction"


@torch.no_grad()
def states(context: Context, *, samples: int = 8, channels: int = 1) -> Rows:
    """Measure every layer.

    `channels`: how many of the largest are left out.
    """
    return [
        {"layer": layer, "tokens": state.unit.shape[2]} | row
        for layer, (state, moved) in enumerate(passes(*in_float64(context, samples)))
        for row in layer_rows(state, moved, channels)
    ]


def passes(network: Network, inputs: Tensor) -> list[tuple[Carried, Tensor]]:
    """Return states (1, B, T, D) at layers 0 .. L, and those of a pass whose rounding differs, at the same powers of two."""
    other = copy.deepcopy(network)
    x = network.lift(inputs)
    with shaken(other):
        moved = other.lift(inputs)
        if not network.remembers:
            twice = carry_twice(network.blocks, other.blocks, x, moved)
            return [(state, second.unit) for state, second, _ in twice]
        # A layer that reads earlier layers' results is not a map of one state, so it cannot be tried at another size.
        states, lost = [], torch.zeros(()).bool()  # lost from the first state on that has no size
        for state, second in zip(map(begin, network.layers(x)), other.layers(moved)):
            lost = lost | state.lost
            states.append((replace(state, lost=lost), second))
        return states


def layer_rows(state: Carried, moved: Tensor, channels: int) -> Iterator[dict[str, Any]]:
    """Yield all rows of a layer."""
    lost = (state.lost | ~state.unit.isfinite().flatten(-2).all(-1))[0]  # (B,)
    x, y = (torch.where(lost[:, None, None], 0.0, unit[0]) for unit in (state.unit, moved))  # (B, T, D)
    width = x.shape[-1]
    kept = largest_channels(x, channels) if channels < width else None
    for left_out in ("nothing", "first token", "largest channels", "both"):
        first = 1 if left_out in ("first token", "both") else 0
        fewer_channels = left_out in ("largest channels", "both")
        labels = {"left_out": left_out, "channels": channels if fewer_channels else 0}
        reason = (
            f"the state has {width} channels, and {channels} are left out" if fewer_channels and kept is None else ""
        )
        reason = reason or (ONE_TOKEN if first >= x.shape[1] else "")
        if reason:
            yield from (state_row(labels, name, torch.full((1,), torch.nan), reason) for name in QUANTITIES)
        else:
            part = [states[:, first:, kept] if fewer_channels else states[:, first:] for states in (x, y)]
            yield from part_rows(labels, part[0], part[1], state, lost)


def part_rows(
    labels: dict[str, Any], x: Tensor, moved: Tensor, state: Carried, lost: Tensor
) -> Iterator[dict[str, Any]]:
    """Yield the rows of states (B, T, D), which may exclude a token or channels."""
    reason = reason_of(state.unit[0], lost=state.lost[0]) or reason_of(x)
    pair = "" if x.shape[1] > 1 else ONE_TOKEN
    size = Carried(x, state.exponent[0] + exponent_of(x), lost).absolute(root_mean_square(unit(x)))
    yield state_row(labels, "norm", size, reason or TOO_SMALL)
    yield state_row(labels, "cosine", mean_cosine(x), pair or reason or ZERO_TOKEN)
    plain, gram = stable_ranks(x)
    yield state_row(labels, "stable_rank", plain, reason)
    yield state_row(labels, "stable_rank_gram", gram, reason)
    if pair:
        yield state_row(labels, "residual", torch.full_like(plain, torch.nan), pair)
        return
    relative = relative_residual(x)
    noise = relative_difference(residual(x), residual(moved), "composite") > NOISE
    yield state_row(labels, "residual", relative, reason or TOO_SMALL, at_floor(relative, x.dtype) | noise)


def state_row(
    labels: dict[str, Any], quantity: str, values: Tensor, reason: str, floor: Tensor | None = None
) -> dict[str, Any]:
    """Return a row of values (B,), with null if a sample has no value, as in `residuals`."""
    numbers = mean_of_samples(values, reason or TOO_SMALL)
    share = None if floor is None or numbers["value"] is None else floor.double().mean().item()
    return labels | {"quantity": quantity, "floor_share": share} | numbers
