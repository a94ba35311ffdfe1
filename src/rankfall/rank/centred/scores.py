"""Attention scores in four parts: common to all rows, of each key, of each query, and of each pair.

With q_i = q + rho_i and k_j = k + kappa_j (rho, kappa from R; q, k from x),

    q_i . k_j = q . k  +  q . kappa_j  +  rho_i . k  +  rho_i . kappa_j
                base      key             query         both = E = R W_QK R^T / sqrt(d)

base is of order one, key and query are of the order of R, and both is of the order of R^2.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rankfall.nets.attentions.multihead import Multihead
from rankfall.nets.positions._base import Position
from rankfall.rank.centred.assumptions import Unknown, adds, keeps_form
from rankfall.rank.centred.scaled import Scaled, State, member, normal
from rankfall.rank.centred.tokenwise import increment

PREPARING = (
    "rankfall.nets.normalisers.cosine:Cosine",
    "rankfall.nets.normalisers.key_normalised:KeyNormalised",
    "rankfall.nets.normalisers.qk_norm:QkNorm",
)


@dataclass(frozen=True)
class Scores:
    base: Tensor  # (K, B, H, 1, J), J = S + T keys
    key: Scaled  # (K, B, H, 1, J)
    query: Scaled  # (K, B, H, T, J)
    both: Scaled  # (K, B, H, T, J)
    shared: bool  # whether query is the same for all keys
    level: bool  # whether base is also the same for all keys


def scores(attention: Multihead, state: State) -> Scores | None:
    """Return the parts of the scores, rows of tokens only.

    None where rows differ even for identical states: a mask, a rotation, or a bias that depends on the query's position.
    """
    position = attention.position
    allowed = attention.mask(len(state.tokens) + len(state.others), state.common.device)
    if allowed is not None and not bool(allowed.all()):
        return None
    if not keeps_form(position, Position, "rotate", "products"):
        return None
    normaliser: Any = attention.normaliser
    prepares = hasattr(normaliser, "prepare")
    if prepares and not any(keeps_form(normaliser, name, "prepare") for name in PREPARING):
        raise Unknown("the normaliser prepares queries and keys in an unknown way: no centred form")
    bias = key_bias(attention, state)
    if bias is None:
        return None
    shrink = attention.head_width**-0.5
    query, key, split = attention.query, attention.key, attention.split
    q, k = split(query(state.common)), split(key(state.common))  # (K, B, H, 1, d)
    rho, kappa = split(state.rest.unit @ member(query.weight)), split(state.rest.unit @ member(key.weight))
    k_other = split(key(state.sentinels)) if len(state.others) else k[..., :0, :]  # (K, B, H, S, d)
    if prepares:  # each query and key is mapped separately, and the increments of q + rho_i and k + kappa_j are again of the order of R
        to_q, to_k = (lambda x: normaliser.prepare(x, x)[0]), (lambda x: normaliser.prepare(x, x)[1])
        rho, kappa = (increment(f, x, Scaled(y, state.rest.log)) for f, x, y in ((to_q, q, rho), (to_k, k, kappa)))
        q, k, k_other = to_q(q), to_k(k), to_k(k_other)

    def columns(tokens: Tensor, others: Tensor) -> Tensor:
        """Merge (K, B, H, rows, T or 1) and (K, B, H, rows, S) to (K, B, H, rows, J)."""
        tokens = tokens.expand(*tokens.shape[:-1], len(state.tokens))
        return state.assemble(tokens.transpose(-1, -2), others.transpose(-1, -2)).transpose(-1, -2) * shrink

    def no_sentinels(rows: int) -> Tensor:
        return q.new_zeros(*q.shape[:3], rows, len(state.others))

    log, tokens = state.rest.log, len(state.tokens)
    return Scores(
        base=columns((q * k).sum(-1, keepdim=True), q @ k_other.transpose(-1, -2)) + bias,
        key=normal(columns(q @ kappa.transpose(-1, -2), no_sentinels(1)), log),
        query=normal(columns((rho * k).sum(-1, keepdim=True), rho @ k_other.transpose(-1, -2)), log),
        both=normal(columns(rho @ kappa.transpose(-1, -2), no_sentinels(tokens)), 2 * log),
        shared=not len(state.others),
        level=not len(state.others) and bool((bias == bias[..., :1]).all()),
    )


def key_bias(attention: Multihead, state: State) -> Tensor | None:
    """Return the position's addition to the scores (K, 1, H, 1, J) if it is the same for all queries, else None."""
    position, weight = attention.position, attention.query.weight
    count = len(state.tokens) + len(state.others)
    zero = weight.new_zeros(weight.shape[0], 1, attention.heads, count, count)
    if type(position).bias is Position.bias:
        return zero[..., :1, :]
    share = position.bias(zero)
    bias = share[..., state.tokens, :]
    return bias[..., :1, :] if bool((bias == bias[..., :1, :]).all()) and adds(position.bias, share) else None


def largest_score(x: Scaled) -> Tensor:
    """Return the absolute value of the largest entry (K, B)."""
    return torch.where(x.log > 700, torch.inf, x.log.clamp(-700, 700).exp())
