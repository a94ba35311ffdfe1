"""Linear attention (Katharopoulos et al. 2020): weights are products of features, so no T x T matrix is needed.

    o_i = sum_j f(q_i).f(k_j) v_j / sum_j f(q_i).f(k_j) = f(q_i)^T S / f(q_i)^T z,    S = sum_j f(k_j) v_j^T,    z = sum_j f(k_j)

per head, over all j, or over j <= i with the causal mask, where S and z run along the sequence, CHUNK tokens at a time.
`feature`: f, entry by entry; `elu` is elu(x) + 1, `exp` is e^x. Both are positive, so the weights are too, and their rows sum to one.

Near identical rows, X = 1 x^T + R with |R| = eps, without mask: rows of weights differ by the mixed second difference of log f(q_i).f(k_j)
in query and key, O(eps^2), since a change of the query that is the same for all keys cancels in the quotient. Rows sum to one, so they
multiply differences of values, O(eps). The order of contraction is 3, like softmax's. In a head of one dimension f(q_i) cancels completely:
all rows are equal. With the causal mask rows differ at order one but still sum to one: order 1. A sentinel is a key that differs from the
others, whose weight changes with the query by O(eps): order 1. With both the order is 0.
"""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from rankfall.errors import RankfallError
from rankfall.nets.masks._mask import Mask
from rankfall.nets.positions._base import HOOKS, Position
from rankfall.nets.primitives import Dropout, Linear, Sizes, no_dropout

OFFERS = ()
ROWS = "one"
MIXES = "features"
IGNORES = ("normaliser",)
REQUIRES = [({"mask": ["none", "causal"]}, "without T x T weights a sum runs over all tokens or over those before")]
CHUNK = 32  # tokens of a causal sum per step: products within a chunk are C x C

FEATURES: dict[str, Callable[[Tensor], Tensor]] = {"elu": lambda x: functional.elu(x) + 1, "exp": torch.exp}


class LinearAttention(nn.Module):
    def __init__(
        self,
        sizes: Sizes,
        position: Position,
        normaliser: object,
        mask: Mask,
        site: str,
        *,
        feature: Literal["elu", "exp"] = "elu",
    ) -> None:
        super().__init__()
        inner = sizes.heads * sizes.head_width
        self.heads, self.head_width, self.feature = sizes.heads, sizes.head_width, FEATURES[feature]
        self.query = Linear(sizes, sizes.width, inner, "query")
        self.key = Linear(sizes, sizes.width, inner, "key")
        self.value = Linear(sizes, sizes.width, inner, "value")
        self.output = Linear(sizes, inner, sizes.width, "output")
        self.causal = causal(mask)
        refuse_position(position)

    def split(self, x: Tensor) -> Tensor:
        """Split the heads: (K, B, T, H*d) -> (K, B, H, T, d)."""
        return x.view(*x.shape[:-1], self.heads, self.head_width).transpose(2, 3)

    def forward(self, x: Tensor, drop: Dropout = no_dropout) -> Tensor:
        q, k, v = (self.split(part(x)) for part in (self.query, self.key, self.value))
        context = mix(self.feature(q), self.feature(k), v, self.causal)
        return self.output(context.transpose(2, 3).flatten(-2))


def mix(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    """Return o (..., T, d) from features of queries and keys and from values."""
    if not causal:
        return (q @ (k.transpose(-1, -2) @ v)) / (q @ k.sum(-2).unsqueeze(-1))
    state, total = q.new_zeros(*q.shape[:-2], q.shape[-1], v.shape[-1]), q.new_zeros(*q.shape[:-2], q.shape[-1], 1)
    rows = []
    for qs, ks, vs in zip(q.split(CHUNK, -2), k.split(CHUNK, -2), v.split(CHUNK, -2)):
        near = (qs @ ks.transpose(-1, -2)).tril()  # (..., C, C)
        rows.append((qs @ state + near @ vs) / (qs @ total + near.sum(-1, keepdim=True)))
        state, total = state + ks.transpose(-1, -2) @ vs, total + ks.sum(-2).unsqueeze(-1)
    return torch.cat(rows, -2)


def causal(mask: Mask) -> bool:
    """Return whether the mask is causal. Raise an error for any mask other than causal or none."""
    allowed = mask(3, torch.device("cpu"))
    if allowed is None or bool(allowed.all()):
        return False
    if not torch.equal(allowed, torch.ones_like(allowed).tril()):
        raise RankfallError("linear attention has no weights to mask one by one: its mask is none or causal")
    return True


def refuse_position(position: Any) -> None:
    """Raise an error for a position that acts on anything but states."""
    hooks = [hook for place, hook in HOOKS.items() if place != "states"]
    if any(getattr(type(position), hook) is not getattr(Position, hook) for hook in hooks):
        raise RankfallError("linear attention has no scores for a position to act on: its position acts on states")
