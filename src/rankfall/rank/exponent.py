"""The local exponent of a layer: how much its output residual changes when the rows of its input are slightly more similar."""

import math
from typing import Any

import torch
from torch import Tensor

from rankfall.rank.bounds import log10_norm
from rankfall.rank.centred.block import step
from rankfall.rank.centred.state import State, rescale
from rankfall.rank.powers import outside

STEP = 0.1  # R is reduced by this, in natural logarithms,
SHARE = 1e-6  # or by this share of log|R| if larger, since the change must exceed the rounding of a large logarithm
OUT = outside(torch.float64)


def exponent(block: Any, before: State, after: State) -> Tensor:
    """Return d log|R out| / d log|R in| (K, B), by making R slightly smaller."""
    less = (SHARE * before.rest.log.abs()).clamp_min(STEP)
    smaller = step(block, rescale(before, before.rest.log - less))
    change = log10_norm(after.rest, "composite") - log10_norm(smaller.rest, "composite")
    return change * math.log(10) / less


def pick(value: Any, sample: int) -> Any:
    """Return an entry of a tensor (1, B) as a plain number, null where it is not finite. Any other value is returned as it is."""
    if not isinstance(value, Tensor):
        return value
    number = value[0, sample].item()
    return number if isinstance(number, bool) or math.isfinite(number) else None


def none_reason(log10_residual: Tensor) -> str:
    """Return the reason why a residual has no logarithm; empty where it has one."""
    if math.isfinite(log10_residual):
        return ""
    return "rows are identical to the last digit" if log10_residual == -math.inf else OUT
