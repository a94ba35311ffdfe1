"""Test of whether attention weights can be the softmax of scores q k^T of width d_k (Bhardwaj et al. 2021).

log A equals S up to a constant per row, so log A and S with the mean of each row subtracted are equal, of rank d_k or less. Conversely,
if the centred log A has rank d_k or less, it is itself such a matrix of scores. (Without centring the bound is d_k + 1.) The test needs
every weight above zero, and an unmasked block of rows and columns that is larger than d_k + 1.
"""

import torch
from torch import Tensor

TOLERANCE = 1e-9  # relative to the largest singular value; logarithms of weights are exact to about 1e-15


def score_rank(weights: Tensor, tolerance: float = TOLERANCE) -> Tensor:
    """Return the rank of the scores behind positive weights (..., R, n), up to a shift of each row, (...)."""
    logs = weights.log()
    s = torch.linalg.svdvals(logs - logs.mean(-1, keepdim=True))
    return (s > tolerance * s[..., :1]).sum(-1)


def free_block(allowed: Tensor) -> tuple[slice, slice] | None:
    """Return rows and columns of (T, T) that no mask affects, or None if the mask is neither absent nor causal.

    Under a causal mask they are the later half of rows and the columns that all of these see.
    """
    tokens = allowed.shape[-1]
    if bool(allowed.all()):
        return slice(0, tokens), slice(0, tokens)
    if bool((allowed == torch.ones_like(allowed).tril()).all()):
        half = tokens // 2
        return slice(half, tokens), slice(0, half + 1)
    return None
