"""Could a matrix of attention weights be the softmax of scores q k^T of width d_k (Bhardwaj et al. 2021)?

log A = S - 1-row-constants, so log A with the mean of each row taken off equals S with the mean of each row taken off, of rank d_k or
less. Conversely, if log A, so centred, has rank d_k or less, it is itself such a matrix of scores. (Without centring the bound is
d_k + 1.) The test needs every weight above zero, and a block of rows and columns without a mask that is larger than d_k + 1.
"""

import torch
from torch import Tensor

TOLERANCE = 1e-9  # of the largest singular value; logarithms of weights are exact to about 1e-15


def score_rank(weights: Tensor, tolerance: float = TOLERANCE) -> Tensor:
    """Rank of the scores that weights (..., R, n) above zero come from, up to a shift of each row, (...)."""
    logs = weights.log()
    s = torch.linalg.svdvals(logs - logs.mean(-1, keepdim=True))
    return (s > tolerance * s[..., :1]).sum(-1)


def free_block(allowed: Tensor) -> tuple[slice, slice] | None:
    """Rows and columns (T, T) that no mask touches: everything, or under a causal mask the later half of rows and what all of them
    see; None for other masks.
    """
    tokens = allowed.shape[-1]
    if bool(allowed.all()):
        return slice(0, tokens), slice(0, tokens)
    if bool((allowed == torch.ones_like(allowed).tril()).all()):
        half = tokens // 2
        return slice(half, tokens), slice(0, half + 1)
    return None
