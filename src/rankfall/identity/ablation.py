"""Effect of ablating one token: the distance that each state moves when x_i is replaced by the mean of the sample's tokens.

The replacement is not zero, because a state of zero resembles no token that the layers have seen. A move below the rounding of the
state's arithmetic counts as no effect. So the zeros of a causal mask stay exact on any processor, and ranks are not affected by noise.
"""

import torch
from torch import Tensor

from rankfall.identity.jacobian import MEMORY, Layers
from rankfall.rank.powers import length

ROUNDINGS = 64  # units in the last place that a network of tens of layers accumulates


@torch.no_grad()
def ablation(layers: Layers, x: Tensor, memory: int = MEMORY) -> Tensor:
    """Return ||e_j^l - e_j^l with token i replaced|| as (L, ..., B, T, T) for states x (..., B, T, D), rows j and columns i."""
    samples, tokens, _ = x.shape[-3:]
    whole = torch.stack(list(layers(x)))  # (L, ..., B, T, D)
    found = whole.new_empty(*whole.shape[:-1], tokens)
    rounding = ROUNDINGS * torch.finfo(x.dtype).eps * length(whole)  # (L, ..., B, T)
    step = max(1, memory // (16 * x[..., 0, :, :].numel() * x.element_size()))
    for sample in range(samples):
        one = x[..., sample, :, :].unsqueeze(-3)  # (..., 1, T, D)
        for part in torch.arange(tokens, device=x.device).split(step):
            changed = one.repeat(*[1] * (x.dim() - 3), len(part), 1, 1)  # (..., C, T, D)
            changed[..., torch.arange(len(part)), part, :] = one.mean(-2)
            for layer, state in enumerate(layers(changed)):
                moved = length(state - whole[layer][..., sample, :, :].unsqueeze(-3))  # (..., C, T)
                moved = moved.masked_fill(moved <= rounding[layer][..., sample, :].unsqueeze(-2), 0)
                found[layer][..., sample, :, part] = moved.transpose(-1, -2)
    return found
