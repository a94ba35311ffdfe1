"""Attention on a state apart.

    sum_j P_ij v_j = (row sum)_i v + sum_tokens P_ij nu_j + sum_sentinels P_is (v_s - v),      v_j = v + nu_j, nu = R W_V

What is common to all rows goes into x; R takes the rest: row sums less their common part, and P less what its rows share.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rankfall.measures.centred.scaled import Scaled, add, normal, plain, where
from rankfall.measures.centred.scores import member, reach, scores
from rankfall.measures.centred.state import State
from rankfall.measures.centred.weights import Weights, rule_of, sums_to_one
from rankfall.nets.normalisers.urpe import Urpe

if TYPE_CHECKING:
    from rankfall.nets.attention import Attention

VISIBLE = 0.5  # where what a pair adds to its score exceeds this, ordinary weights have all their digits

ROUNDING = 4 * torch.finfo(torch.float64).eps  # of one term of a sum


class Unknown(Exception):
    """A component for which no centred form is known."""


def attend(attention: "Attention", state: State) -> State:
    """SA(X), apart."""
    full = state.full()
    found = weights(attention, state, full)
    split = attention.split
    v = split(attention.value(state.common))  # (K, B, H, 1, d)
    nu = split(state.rest.unit @ member(attention.value.weight))  # (K, B, H, T, d)
    rows = found.rows
    terms = [normal(rows.unit[..., state.tokens] @ nu, rows.log + state.rest.log)]
    if len(state.others):
        apart = split(attention.value(state.sentinels)) - v  # (K, B, H, S, d)
        terms.append(rows.map(rows.unit[..., state.others] @ apart))
    if found.sums is not None:
        terms.append(found.sums.map(found.sums.unit * v))
    context = add(*terms)  # (K, B, H, T, d)
    context = context.map(context.unit - context.unit.mean(-2, keepdim=True))
    merged = context.unit.transpose(2, 3).flatten(-2)  # (K, B, T, H*d)
    return state.moved(attention(full), context.map(merged @ member(attention.output.weight)))


def weights(attention: "Attention", state: State, full: Tensor) -> Weights:
    """Weights by the normaliser's rule where rows are close, as ever where they differ visibly."""
    ordinary = visible(attention, state, full)
    apart = scores(attention, state)
    rule = rule_of(attention.normaliser)
    if apart is None:
        return ordinary
    far = reach(apart.both) > VISIBLE  # (K, B)
    if rule is None:
        if isinstance(attention.normaliser, Urpe) or bool(far.all()):
            return ordinary  # its factors tell places apart at order one
        raise Unknown(f"no centred form of the normaliser {attention.normaliser}")
    close = rule(apart)
    if close.holds is not None:
        far = far | ~close.holds
    sums = None
    if close.sums is not None and ordinary.sums is not None:
        sums = where(far, ordinary.sums, close.sums)
    return Weights(where(far, ordinary.rows, close.rows), sums)


def visible(attention: "Attention", state: State, full: Tensor) -> Weights:
    """Ordinary weights: rows less their first, row sums less theirs."""
    p = attention.weights(full)[..., state.tokens, :]  # (K, B, H, T, J)
    rows: Scaled = plain(p)
    if sums_to_one(attention.normaliser):
        return Weights(rows, None)
    sums = p.sum(-1, keepdim=True)
    apart = sums - sums[..., :1, :]
    if rule_of(attention.normaliser) is None and not isinstance(attention.normaliser, Urpe):
        # Of a normaliser not known here, equal sums are known by their rounding alone.
        noise = ROUNDING * p.shape[-1] * sums.abs().amax((-2, -1), keepdim=True)
        apart = torch.where(apart.abs().amax((-2, -1), keepdim=True) > noise, apart, torch.zeros_like(apart))
    return Weights(rows, plain(apart))
