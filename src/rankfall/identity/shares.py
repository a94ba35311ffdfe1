"""Statistics of a matrix of contributions: c_ji, the share of token j's state that comes from token i; shares sum to one over i.

c_ji = n_ji / sum_k n_jk
"""

import torch
from torch import Tensor

from rankfall.rank.powers import least

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
    there = (contributions.amax(-1, keepdim=True) >= least(contributions.dtype) ** 0.5) & size.isfinite()
    return torch.where(there, contributions / size, torch.nan)


def quantities(contributions: Tensor, tokens: Tensor) -> dict[str, Tensor]:
    """Return each quantity (..., N) of rows (..., N, T) that belong to the tokens j (..., N)."""
    share = shares(contributions)
    own = tokens.unsqueeze(-1)
    there = torch.arange(share.shape[-1], device=share.device)
    distance = (there - own).abs()  # (..., N, T)
    mine = share.gather(-1, own.expand(*share.shape[:-1], 1)).squeeze(-1)
    others = share.masked_fill(distance == 0, -torch.inf).amax(-1)
    found = {OWN: mine, NOT_FIRST: torch.where(mine.isnan(), mine, (others > mine).to(share.dtype))}
    for name, (near, far) in BANDS.items():
        inside = (distance >= near) & (distance <= (share.shape[-1] if far is None else far))
        found[name] = (share * inside).sum(-1)
    return found


def ranks(values: Tensor, counted: Tensor) -> Tensor:
    """Return ranks within rows (..., T), with ties averaged, among the entries that are counted; zero elsewhere."""
    less = (values.unsqueeze(-2) < values.unsqueeze(-1)) & counted.unsqueeze(
        -2
    )  # (..., T, T): entry k is less than entry i
    same = (values.unsqueeze(-2) == values.unsqueeze(-1)) & counted.unsqueeze(-2)
    return (less.sum(-1) + (same.sum(-1) + 1).to(values.dtype) / 2) * counted


def correlations(by_method: dict[str, Tensor], counted: Tensor) -> dict[tuple[str, str], Tensor]:
    """Return Spearman's rank correlation of each pair of methods, row by row (..., N), from contributions (..., N, T)."""
    spread = {}
    for method, values in by_method.items():
        rank = ranks(values.double(), counted)
        centred = (rank - rank.sum(-1, keepdim=True) / counted.sum(-1, keepdim=True)) * counted
        spread[method] = centred / centred.norm(dim=-1, keepdim=True)  # NaN where all are equal
    names = list(by_method)
    return {
        (one, other): (spread[one] * spread[other]).sum(-1)
        for place, one in enumerate(names)
        for other in names[place + 1 :]
    }
