"""One network of a stack, where members have different work to do: computed together, each would do that of all."""

import copy
from collections.abc import Iterator
from dataclasses import replace

from rankfall.nets.network import Network
from rankfall.tasks._dataset import Split
from rankfall.train.data import Data


def each_network(network: Network) -> Iterator[Network]:
    """Stacks of one member (1, ...), in turn. All that a network has for each member is in its parameters."""
    members = len(next(network.parameters()))
    for member in range(members):
        one = copy.deepcopy(network)
        for value in one.parameters():
            value.data = value.data[member : member + 1].clone()
        yield one


def data_of(data: Data, member: int) -> Data:
    """The data of one member (1, N, ...)."""
    own = slice(member, member + 1)
    splits = {name: Split(split.inputs[own], split.targets[own]) for name, split in data.splits.items()}
    return replace(data, splits=splits, chance=data.chance[own])
