"""Helpers of measures: the network and inputs in float64, means over samples, and rows of the table `evidence`."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # an experiment that only makes rows of `evidence` does not depend on what builds networks
    from torch import Tensor

    from rankfall.measure.context import Context
    from rankfall.nets.network import Network

Evidence = Iterator[dict[str, Any]]  # rows of the table `evidence`


def in_float64(context: Context, samples: int) -> tuple[Network, Tensor]:
    """Return a copy of the network in float64, and the inputs of its first test samples (1, B, ...)."""
    inputs = context.data.test.inputs[:, :samples]
    return copy.deepcopy(context.network).double(), double_values(inputs)


def strip_sentinels(network: Network, x: Tensor) -> Tensor:
    """Return states (K, B, T', D) without the rows of sentinels."""
    return x if network.sentinels is None else network.sentinels.strip(x)


def double_values(x: Tensor) -> Tensor:
    """Return a tensor in float64, unless it holds symbols."""
    return x.double() if x.is_floating_point() else x


def mean_of_samples(values: Tensor, reason: str) -> dict[str, Any]:
    """Return mean and deviation of the samples' values (B,), or a reason instead if a value is not finite."""
    known = bool(values.isfinite().all())
    return {
        "value": values.mean().item() if known else None,
        "deviation": values.std().item() if known and len(values) > 1 else None,
        "value_reason": "" if known else reason,
    }


def evidence_row(
    claim: str, quantity: str, line: str, x: float, seed: int, value: float, reason: str = ""
) -> dict[str, Any]:
    """Return a row of `evidence`, which the experiments of claims fill.

    `quantity` is "what, by what": the vertical axis, and the meaning of `x`. A value that is not finite becomes null, with a reason.
    """
    number = float(value)
    known = math.isfinite(number)
    return {
        "claim": claim,
        "quantity": quantity,
        "line": line,
        "x": float(x),
        "seed": int(seed),
        "value": number if known else None,
        "value_reason": None if known else reason or f"the value is {number}",
    }
