"""A network whose states are those of another times powers of two."""

import copy
from collections.abc import Sequence

import torch

from rankfall.nets.network import Network

INWARD = {"query", "key", "value", "gate", "shared", "inner"}


def resized(network: Network, powers: Sequence[int]) -> Network:
    """The state after layer l is multiplied by 2^powers[l], which the maps of the next layer take back: without norms, and with one power
    for all layers where there are skip connections, nothing else changes."""
    made = copy.deepcopy(network)
    enlarge(made.embedding, powers[0])
    if made.sentinels is not None:
        enlarge(made.sentinels, powers[0])
    for block, before, after in zip(made.blocks, powers, powers[1:]):
        for part, size in ((block.attention, before), (block.mlp, after)):
            for name, child in part.named_children() if part is not None else ():
                if name in INWARD:
                    child.weight.data.mul_(2.0**-size)
                elif name in ("output", "outer"):
                    enlarge(child, after)
    return made


def enlarge(module: torch.nn.Module, power: int) -> None:
    for value in module.parameters():
        value.data.mul_(2.0**power)
