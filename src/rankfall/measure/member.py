"""Single networks of a stack, for work that differs between members: a stack would do the work of all for each."""

import copy
from collections.abc import Iterator
from dataclasses import replace

from rankfall.nets.network import Network
from rankfall.tasks._dataset import Split
from rankfall.train.data import Data


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
