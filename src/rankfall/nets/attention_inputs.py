"""What the attention of each layer reads, whatever a block puts before it: a norm, one of several streams, or nothing."""

import torch
from torch import Tensor

from rankfall.nets.network import Network


@torch.no_grad()
def attention_inputs(network: Network, inputs: Tensor) -> list[Tensor]:
    """By layer (K, B, T', D), of a forward pass on inputs (K, B, T) or (K, B, T, C); T' counts sentinels."""
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
