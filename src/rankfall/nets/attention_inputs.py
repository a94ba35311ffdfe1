"""The input of each layer's attention, behind whatever a block puts before it: a norm, a read of several streams, or nothing."""

import torch
from torch import Tensor

from rankfall.nets.network import Network


@torch.no_grad()
def attention_inputs(network: Network, inputs: Tensor) -> list[Tensor]:
    """Return the attention inputs (K, B, T', D) by layer for inputs (K, B, T) or (K, B, T, C). T' counts sentinels."""
    found: list[Tensor] = []
    hooks = [
        block.attention.register_forward_pre_hook(lambda _, given: found.append(given[0])) for block in network.blocks
    ]
    try:
        network.run(network.lift(inputs))
    finally:
        for hook in hooks:
            hook.remove()
    return found
