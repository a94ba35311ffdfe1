"""Statistics of a matrix of contributions: c_ji, the share of token j's state that comes from token i; shares sum to one over i.

c_ji = n_ji / sum_k n_jk

`ablation` gives the effect of ablating one token: the distance that each state moves when x_i is replaced by the mean of the sample's
tokens. The replacement is not zero, because a state of zero resembles no token that the layers have seen. A move below the rounding of the
state's arithmetic counts as no effect. So the zeros of a causal mask stay exact on any processor, and ranks are not affected by noise.
"""

from itertools import combinations

import torch
from torch import Tensor

from rankfall.identity.jacobian import MEMORY, Layers
from rankfall.rank.powers import least, length

OWN, NOT_FIRST = "own share", "not first"
BANDS = {  # range of |i - j|, both ends included
    "distance 1": (1, 1),
    "distance 2": (2, 2),
    "distance 3": (3, 3),
    "distance 4-5": (4, 5),
    "distance 6-10": (6, 10),
    "distance 11+": (11, None),
}


def shares(contributions: Tensor) -> Tensor:
    """Divide rows (..., T) by their sums; NaN where contributions are zero, or too small to be squared in their format."""
    size = contributions.sum(-1, keepdim=True)
    defined = (contributions.amax(-1, keepdim=True) >= least(contributions.dtype) ** 0.5) & size.isfinite()
    return torch.where(defined, contributions / size, torch.nan)


def quantities(contributions: Tensor, tokens: Tensor) -> dict[str, Tensor]:
    """Return each quantity (..., N) of rows (..., N, T) that belong to the tokens j (..., N)."""
    share = shares(contributions)
    index = tokens.unsqueeze(-1)
    places = torch.arange(share.shape[-1], device=share.device)
    distance = (places - index).abs()  # (..., N, T)
    own_share = share.gather(-1, index.expand(*share.shape[:-1], 1)).squeeze(-1)
    others = share.masked_fill(distance == 0, -torch.inf).amax(-1)
    values = {
        OWN: own_share,
        NOT_FIRST: torch.where(own_share.isnan(), own_share, (others > own_share).to(share.dtype)),
    }
    for name, (near, far) in BANDS.items():
        inside = (distance >= near) & (distance <= (share.shape[-1] if far is None else far))
        values[name] = (share * inside).sum(-1)
    return values


def ranks(values: Tensor, counted: Tensor) -> Tensor:
    """Return ranks within rows (..., T), with ties averaged, among the entries that are counted; zero elsewhere."""
    # (..., T, T): entry k is less than entry i
    less = (values.unsqueeze(-2) < values.unsqueeze(-1)) & counted.unsqueeze(-2)
    same = (values.unsqueeze(-2) == values.unsqueeze(-1)) & counted.unsqueeze(-2)
    return (less.sum(-1) + (same.sum(-1) + 1).to(values.dtype) / 2) * counted


def correlations(by_method: dict[str, Tensor], counted: Tensor) -> dict[tuple[str, str], Tensor]:
    """Return Spearman's rank correlation of each pair of methods, row by row (..., N), from contributions (..., N, T)."""
    spread = {}
    for method, values in by_method.items():
        rank = ranks(values.double(), counted)
        centred = (rank - rank.sum(-1, keepdim=True) / counted.sum(-1, keepdim=True)) * counted
        spread[method] = centred / centred.norm(dim=-1, keepdim=True)  # NaN where all are equal
    return {(first, second): (spread[first] * spread[second]).sum(-1) for first, second in combinations(by_method, 2)}


ROUNDINGS = 64  # units in the last place that a network of tens of layers accumulates


@torch.no_grad()
def ablation(layers: Layers, x: Tensor, memory: int = MEMORY) -> Tensor:
    """Return ||e_j^l - e_j^l with token i replaced|| as (L, ..., B, T, T) for states x (..., B, T, D), rows j and columns i."""
    samples, tokens, _ = x.shape[-3:]
    whole = torch.stack(list(layers(x)))  # (L, ..., B, T, D)
    effects = whole.new_empty(*whole.shape[:-1], tokens)
    rounding = ROUNDINGS * torch.finfo(x.dtype).eps * length(whole)  # (L, ..., B, T)
    step = max(1, memory // (16 * x[..., 0, :, :].numel() * x.element_size()))
    for sample in range(samples):
        original = x[..., sample, :, :].unsqueeze(-3)  # (..., 1, T, D)
        for part in torch.arange(tokens, device=x.device).split(step):
            changed = original.repeat(*[1] * (x.dim() - 3), len(part), 1, 1)  # (..., C, T, D)
            changed[..., torch.arange(len(part)), part, :] = original.mean(-2)
            for layer, state in enumerate(layers(changed)):
                moved = length(state - whole[layer][..., sample, :, :].unsqueeze(-3))  # (..., C, T)
                moved = moved.masked_fill(moved <= rounding[layer][..., sample, :].unsqueeze(-2), 0)
                effects[layer][..., sample, :, part] = moved.transpose(-1, -2)
    return effects
