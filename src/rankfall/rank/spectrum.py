"""Statistics of states (..., T, D) besides the residual: their size, how parallel tokens are, and the effective rank.

The effective rank is the exponential of the entropy of the shares of singular values,
p_i = s_i / sum s, erank = exp(- sum p_i log p_i) (Roy and Vetterli 2007): 1 for equal rows, min(T, D) for orthogonal rows of equal
length.
"""

import torch
from torch import Tensor

from rankfall.rank.powers import measurable, or_nan, unit


def root_mean_square(x: Tensor) -> Tensor:
    """Return the root mean square of the entries, (...). It scales exactly with powers of two, so units suffice (`powers.py`)."""
    return x.square().mean((-2, -1)).sqrt()


def mean_cosine(x: Tensor) -> Tensor:
    """Return the mean over pairs of different tokens of the cosine of their angle, (...); NaN if a token is zero or there is only one.

    The cosines of all pairs sum to |sum_i u_i|^2 for unit vectors u_i; T of them pair a token with itself.
    """
    tokens = x.shape[-2]
    if tokens < 2:
        return x.new_full(x.shape[:-2], torch.nan)
    rows = unit(x, -1)  # a token may be much smaller than another
    size = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
    cosine = ((rows / size).sum(-2).square().sum(-1) - tokens) / (tokens * (tokens - 1))
    return torch.where((size.squeeze(-1) > 0).all(-1) & measurable(x), cosine, torch.nan)


def largest_channels(x: Tensor, count: int) -> Tensor:
    """Return which channels (D,) of states (B, T, D) remain without the `count` largest.

    Channels are ordered by root mean square over all tokens of all samples.
    """
    sizes = unit(x, (-3, -2, -1)).square().mean((-3, -2))  # (D,)
    kept = torch.ones_like(sizes, dtype=torch.bool)
    kept[sizes.argsort(descending=True, stable=True)[:count]] = False
    return kept


def effective_rank(x: Tensor) -> Tensor:
    """Return the effective rank: (..., T, D) -> (...); NaN where X has no size.

    It is computed from eigenvalues of the smaller product X X^T or X^T X, which takes a fraction of the time of singular values.
    Eigenvalues that are rounding of the largest count as zero.
    """
    x = unit(torch.where(measurable(x)[..., None, None], x, 0.0))
    gram = x @ x.mT if x.shape[-2] <= x.shape[-1] else x.mT @ x  # (..., n, n), n = min(T, D)
    values = torch.linalg.eigvalsh(gram)  # (..., n), ascending
    least = torch.finfo(x.dtype).eps * max(x.shape[-2:]) * values[..., -1:]
    sizes = torch.where(values > least, values, 0.0).sqrt()
    shares = sizes / sizes.sum(-1, keepdim=True)
    return or_nan((-torch.xlogy(shares, shares).sum(-1)).exp(), x)
