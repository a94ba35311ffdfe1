"""Effective rank: the exponential of the entropy of the shares of singular values.

p_i = s_i / sum s, erank = exp(- sum p_i log p_i) (Roy and Vetterli 2007): 1 for equal rows, min(T, D) for orthogonal rows of equal
length.
"""

import torch
from torch import Tensor

from rankfall.rank.powers import measurable, or_nan, unit


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
