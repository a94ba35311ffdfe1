"""Is a mapped state nearest to its own token's embedding? One nearest neighbour among candidates (Brunner et al. 2020, section 4).

Candidates are the embeddings of the same sentence; of these the words that occur once in the sentence; or the embeddings that all words
of the vocabulary have at the token's own place, where position tells nothing. A repeated word is neither asked for nor a candidate of the
second kind: without positions its embeddings are equal, and with them, which of two equal words a state came from is a question about
place. Candidates that are equally near, as far as rounding can tell, share the token: of m nearest that hold the own one it counts
1 / m, which is what a draw among them would give on average.
"""

import torch
from torch import Tensor

from rankfall.rank.powers import unit

DISTANCES = ("cosine", "l2")
ROUNDING = 64  # units of rounding, of the largest terms of a distance, within which two candidates are equally near


def shares(mapped: Tensor, candidates: Tensor, own: Tensor, distance: str, allowed: Tensor | None = None) -> Tensor:
    """(..., Q): 1 where candidate `own` (..., Q) is nearest to a query, 1 / m where it is one of m nearest, 0 elsewhere.

    `mapped` (..., Q, D), `candidates` (..., C, D); `allowed` (..., C), if given, says which candidates there are.
    """
    if distance == "cosine":  # which lengths do not change; squares of small numbers would be zero
        mapped, candidates = unit(mapped, -1), unit(candidates, -1)
    product = mapped @ candidates.transpose(-1, -2)  # (..., Q, C)
    size = candidates.norm(dim=-1).unsqueeze(-2)  # (..., 1, C)
    length = mapped.norm(dim=-1, keepdim=True)  # (..., Q, 1)
    tiny = torch.finfo(mapped.dtype).tiny
    if distance == "cosine":
        near, largest = product / (size * length).clamp_min(tiny), torch.ones_like(length)
    else:  # |g - x|^2 = |g|^2 - 2 (g x - |x|^2 / 2): of the nearest the bracket is largest
        near, largest = product - size.square() / 2, (length * size + size.square()).amax(-1, keepdim=True)
    if allowed is not None:
        near = near.masked_fill(~allowed.unsqueeze(-2), -torch.inf)
    margin = ROUNDING * torch.finfo(mapped.dtype).eps * largest
    nearest = near >= near.amax(-1, keepdim=True) - margin  # (..., Q, C)
    return nearest.gather(-1, own.unsqueeze(-1)).squeeze(-1).double() / nearest.sum(-1)


def once(words: Tensor) -> Tensor:
    """Which tokens (..., T) of a sentence are words that occur once in it."""
    return (words.unsqueeze(-1) == words.unsqueeze(-2)).sum(-1) == 1
