"""Attention on a split state (`scaled.py`): the new rest R, from parts in which the common row has cancelled. Then a block, and a network.

    sum_j P_ij v_j = (row sum)_i v + sum_tokens P_ij nu_j + sum_sentinels P_is (v_s - v),      v_j = v + nu_j, nu = R W_V

The part common to all rows belongs to x. R gets the rest: row sums minus their common part, and P minus the part that its rows share.
"""

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor

from rankfall.errors import describe_error
from rankfall.nets.attentions.multihead import Multihead
from rankfall.nets.blocks.attention import Attention as Block
from rankfall.nets.network import Network
from rankfall.nets.positions._base import Position
from rankfall.rank.centred.assumptions import Unknown, confirm, constant_sums, draw_like, function_name, keeps_form
from rankfall.rank.centred.derived import (
    Map,
    check_rule,
    derive_weights,
    find_written_rule,
    is_single_precision,
    traits,
    treats_rows_alike,
)
from rankfall.rank.centred.expanded import expand_map
from rankfall.rank.centred.scaled import Scaled, State, add, begin, member, normal, plain, where
from rankfall.rank.centred.scores import Scores, largest_score, scores
from rankfall.rank.centred.tokenwise import join, mlp, norm
from rankfall.rank.centred.weights import Rule, Weights, is_urpe, rule_of, sums_to_one

# Methods that the centred form assumes not to be overridden.
FORM = ("forward", "split", "logits", "weights", "contexts", "mix")
VISIBLE = 0.5  # above this size of the pairs' part of the scores, ordinary weights are precise enough

SEEN = 1e-10  # if rows of ordinary weights differ by less than this, relative to the weights, the difference is mostly rounding


def attend(attention: Multihead, state: State) -> State:
    """Return SA(X) as a split state, for an attention that keeps the methods of FORM."""
    if not keeps_form(attention.position, Position, "context"):
        raise Unknown("the position adds to what attention makes of the values: no centred form")
    full = state.full()
    parts = weights(attention, state, full)
    split = attention.split
    v = split(attention.value(state.common))  # (K, B, H, 1, d)
    nu = split(state.rest.unit @ member(attention.value.weight))  # (K, B, H, T, d)
    rows = parts.rows
    terms = [normal(rows.unit[..., state.tokens] @ nu, rows.log + state.rest.log)]
    if len(state.others):
        gaps = split(attention.value(state.sentinels)) - v  # (K, B, H, S, d)
        terms.append(rows.map(rows.unit[..., state.others] @ gaps))
    if parts.sums is not None:
        terms.append(parts.sums.map(parts.sums.unit * v))
    context = add(*terms)  # (K, B, H, T, d)
    context = context.map(context.unit - context.unit.mean(-2, keepdim=True))
    merged = context.unit.transpose(2, 3).flatten(-2)  # (K, B, T, H*d)
    output = attention(full)
    if rule_of(attention.normaliser) is None and not is_urpe(attention.normaliser):
        check_visible_output(attention, full, output[..., state.tokens, :])
    return state.advance(output, context.map(merged @ member(attention.output.weight)))


def check_visible_output(attention: Multihead, full: Tensor, output: Tensor) -> None:
    """Raise `Unknown` where the terms of the common output row cancel, as if rows sum to zero, and only rounding is left."""
    v = attention.split(attention.value(full)).abs().sum(-2, keepdim=True)  # (K, B, H, 1, d)
    size = usual_size(attention, full)[:, None, None] * (
        v.transpose(2, 3).flatten(-2) @ member(attention.output.weight.abs())
    )
    lost = output.mean(-2).abs().amax(-1) <= SEEN * size[..., 0, :].amax(-1)  # (K, B)
    if bool(lost.any()):
        raise Unknown("the attention's common output row cancels up to rounding: no centred form")


def usual_size(attention: Multihead, full: Tensor) -> Tensor:
    """Return the size of weights (K, 1) at scores of order one. Weights that are small by cancellation are as imprecise as these."""
    logits = attention.logits(full)
    hidden = logits == -torch.inf
    return (
        attention.normaliser((draw_like(logits) / 10).masked_fill(hidden, -torch.inf))
        .abs()
        .flatten(1)
        .amax(1, keepdim=True)
    )


def weights(attention: Multihead, state: State, full: Tensor) -> Weights:
    """Return weights by the normaliser's rule where rows are similar, and ordinary weights where rows differ by much."""
    rule = rule_of(attention.normaliser)
    if (
        rule is None
        and not is_urpe(attention.normaliser)
        and is_single_precision(attention.normaliser, attention.logits(full))
    ):
        raise Unknown(f"{function_name(attention.normaliser)} computes in single precision: no centred form")
    ordinary = ordinary_weights(attention, state, full)
    parts = scores(attention, state)
    if parts is None:
        if rule is None and not is_urpe(attention.normaliser) and is_vanished(attention, ordinary, full):
            raise Unknown("attention weights vanish up to rounding, and this position and mask have no centred form")
        return check_ordinary_weights(ordinary)
    far = largest_score(parts.both) > VISIBLE  # (K, B)
    if rule is None:
        if is_urpe(attention.normaliser) or bool(far.all()):
            return check_ordinary_weights(ordinary)  # URPE's factors make rows differ at order one
        rule = custom_rule(attention, state, parts)
        if rule is None:
            return check_ordinary_weights(ordinary)  # the normaliser treats positions differently
    close = rule(parts)
    if close.holds is not None:
        far = far | ~close.holds
    sums = close.sums
    if sums is not None and ordinary.sums is not None:
        sums = where(far, ordinary.sums, sums)
    return Weights(where(far, ordinary.rows, close.rows), sums)


def custom_rule(attention: Multihead, state: State, parts: Scores) -> Rule | None:
    """Return the rule of a user's normaliser, written beside it or from its derivatives; None where it treats positions differently."""
    function, name = on_tokens(attention.normaliser, state), function_name(attention.normaliser)
    shape = parts.both.unit.shape
    like = parts.base[:, :1].expand(-1, 2, -1, shape[-2], -1).contiguous()
    try:
        if not treats_rows_alike(function, like):
            return None
        written = find_written_rule(attention.normaliser)
        if written is not None:
            check_rule(written, function, parts, name)
            return written
        return partial(derive_weights, function, traits(function, like, parts.level))
    except (Unknown, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # a component may raise any error when it is called differently than by a network
        raise Unknown(f"{name} cannot be tried ({describe_error(error)}): no centred form") from error


def on_tokens(normaliser: Any, state: State) -> Map:
    """Return the normaliser as a function of the tokens' rows (K, B, H, T, J). Rows of sentinels, if any, are filled in."""
    if not len(state.others):
        return lambda x: normaliser(x)
    rows = torch.zeros(len(state.tokens) + len(state.others), dtype=torch.long)
    rows[state.tokens] = torch.arange(len(state.tokens))
    return lambda x: normaliser(x[..., rows, :])[..., state.tokens, :]


def ordinary_weights(attention: Multihead, state: State, full: Tensor) -> Weights:
    """Return ordinary weights, and row sums minus that of the first row."""
    logits = attention.logits(full)
    p = attention.normaliser(logits)[..., state.tokens, :]  # (K, B, H, T, J)
    rows: Scaled = plain(p)
    custom = rule_of(attention.normaliser) is None and not is_urpe(attention.normaliser)
    if sums_to_one(attention.normaliser) or (
        custom and constant_sums(attention.normaliser, attention.mask(full.shape[2], full.device), logits)
    ):
        return Weights(rows, None)
    sums = p.sum(-1, keepdim=True)
    return Weights(rows, plain(sums - sums[..., :1, :]))


def is_vanished(attention: Multihead, ordinary: Weights, full: Tensor) -> bool:
    """Check whether weights are so small, compared with those at other scores, that they may be the remainder of a cancellation."""
    size = ordinary.rows.log - usual_size(attention, full).log()  # (K, B)
    return bool((size <= math.log(SEEN)).any())


def check_ordinary_weights(ordinary: Weights) -> Weights:
    """Return ordinary weights. Raise `Unknown` where rows, or their sums, differ so little that the difference is rounding."""
    p, size = ordinary.rows.unit, ordinary.rows.log  # the largest entry of p is one, unless all are zero
    hidden = (p - p[..., :1, :]).abs().flatten(2).amax(2) <= SEEN  # (K, B)
    if ordinary.sums is not None:
        hidden = hidden | (ordinary.sums.log - size <= math.log(SEEN))
    if bool((hidden & size.isfinite()).any()):
        raise Unknown(
            "rows of attention weights differ by rounding only, and this normaliser, position and mask have no centred form"
        )
    return ordinary


def step(block: Any, state: State) -> State:
    """Apply one block, in the order of `nets/blocks/attention.py`. Any other block is expanded by its derivatives, as a whole."""
    if not hasattr(block, "attention"):  # a function of a user, which might not accept another call
        raise Unknown(f"no centred form of {function_name(block)}")
    if not keeps_form(block, Block, "forward"):
        return expand_map(block, state, f"the block {function_name(block)}")
    pre = block.placement == "pre"
    state = join(block.residual, state, mix(block.attention, norm(block.norm1, state) if pre else state))
    state = state if pre else norm(block.norm1, state)
    if block.mlp is None:
        return state
    state = join(block.mlp_residual, state, mlp(block.mlp, norm(block.norm2, state) if pre else state))
    return state if pre else norm(block.norm2, state)


def mix(attention: Any, state: State) -> State:
    """Apply multi-head attention by the formulas of its parts, any other attention by its derivatives."""
    if keeps_form(attention, Multihead, *FORM):
        return attend(attention, state)
    return expand_map(attention, state, f"the attention {function_name(attention)}")


def propagate(network: Network, inputs: Tensor) -> list[State]:
    """Return split states at layers 0 .. L, for a float64 network."""
    if network.remembers:
        raise Unknown("its layers read the results of earlier layers: no centred form")
    states = [begin(network, network.lift(inputs))]
    for block in network.blocks:
        states.append(step(block, states[-1]))
    confirm(network, inputs, states)
    return states
