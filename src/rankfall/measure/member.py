"""Networks and data as measures need them: in float64, and single networks of a stack for work that differs between members."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from torch import Tensor

from rankfall.measure.context import Context
from rankfall.nets.network import Network
from rankfall.tasks._dataset import Split
from rankfall.train.data import Data


def in_float64(context: Context, samples: int) -> tuple[Network, Tensor]:
    """Return a copy of the network in float64, and the inputs of its first test samples (K, B, ...)."""
    inputs = context.data.test.inputs[:, :samples]
    return copy.deepcopy(context.network).double(), double_values(inputs)


def double_values(x: Tensor) -> Tensor:
    """Return a tensor in float64, unless it holds symbols."""
    return x.double() if x.is_floating_point() else x


def mean_of_samples(values: Tensor, reason: str) -> dict[str, Any]:
    """Return mean and deviation of the values (B,) of samples; with a reason instead if a sample has none."""
    known = bool(values.isfinite().all())
    return {
        "value": values.mean().item() if known else None,
        "deviation": values.std().item() if known and len(values) > 1 else None,
        "value_reason": "" if known else reason,
    }


def each_network(network: Network) -> Iterator[Network]:
    """Yield each member of a stack as a stack of one (1, ...). Everything that a network has per member is in its parameters."""
    members = len(next(network.parameters()))
    for member in range(members):
        one = copy.deepcopy(network)
        for value in one.parameters():
            value.data = value.data[member : member + 1].clone()
        yield one


def data_of(data: Data, member: int) -> Data:
    """Return the data of one member (1, N, ...)."""
    own = slice(member, member + 1)
    splits = {name: Split(split.inputs[own], split.targets[own]) for name, split in data.splits.items()}
    return replace(data, splits=splits, chance=data.chance[own])
