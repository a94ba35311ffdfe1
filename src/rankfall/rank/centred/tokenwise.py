"""Norms, MLPs and residual connections on a split state: f(x + R_i) - f(x) at full relative precision."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rankfall.nets.mlps._mlp import Mlp
from rankfall.nets.norms.column import ColumnNorm
from rankfall.nets.norms.layer import Layer
from rankfall.nets.norms.none import none
from rankfall.nets.norms.rms import Rms
from rankfall.rank.centred.assumptions import Unknown, factors, keeps_form, token_wise, unbound
from rankfall.rank.centred.scaled import Scaled, State, add, centre, member, spread

ENTRYWISE = (functional.relu, functional.gelu)  # functions that act on each entry alone
NODES = 8  # of the quadrature: enough for full precision where it is used
VISIBLE = 0.05  # for larger differences subtraction loses at most two digits
INVISIBLE = -20.0  # log of a scale; below it the slope is constant along R in float64


def join(residual: Callable[[Any, Any], Any], state: State, branch: State) -> State:
    """Return residual(X, F(X)), which is linear in both and thus determined by two factors."""
    keep, take = factors(residual, state.full())
    rest = [x.map(x.unit * factor) for x, factor in ((state.rest, keep), (branch.rest, take))]
    return replace(
        state,
        common=keep * state.common + take * branch.common,
        sentinels=keep * state.sentinels + take * branch.sentinels,
        rest=centre(add(*rest)),
    )


def mlp(function: Any, state: State) -> State:
    """Apply the MLP to a split state: two linear maps by the difference of the activation, other MLPs by the slope along R."""
    full = function(state.full())
    two_maps = keeps_form(function, Mlp, "forward")
    if not (two_maps and function.activation in ENTRYWISE):
        token_wise(function, state.full(), "MLP")
    if not two_maps:
        return state.advance(full, state.rest.map(increment(function, state.common, state.rest)))
    inner = function.inner(state.common)  # (K, B, 1, M)
    step = state.rest.map(state.rest.unit @ member(function.inner.weight))
    grown = activation_step(function.activation, inner, step)
    return state.advance(full, grown.map(grown.unit @ member(function.outer.weight)))


def activation_step(f: Callable[[Tensor], Tensor], x: Tensor, g: Scaled) -> Scaled:
    """Return f(x + G) - f(x), entry by entry: relu exactly, smooth functions from their mean slope between the two."""
    scale = g.scale.clamp_min(1e-300)
    y = x + g.value()
    direct = (f(y) - f(x)) / scale
    if f is functional.relu:
        slope = torch.where((x > 0) & (y > 0), g.unit, torch.zeros_like(g.unit))
        return g.map(torch.where((x > 0) == (y > 0), slope, direct))
    smooth = mean_slope(f, x.expand_as(g.unit), g)
    return g.map(torch.where((y - x).abs() > VISIBLE, direct, smooth))


def mean_slope(f: Callable[[Tensor], Tensor], x: Tensor, g: Scaled) -> Tensor:
    """Return the integral over t in [0, 1] of J_f(x + t G) applied to G's unit: f(x + G) - f(x) as a multiple of the scale of G."""
    nodes, shares = np.polynomial.legendre.leggauss(NODES if float(g.log.max()) > INVISIBLE else 1)
    total = torch.zeros(())
    for node, share in zip((nodes + 1) / 2, shares / 2):
        change = torch.func.jvp(f, (x + float(node) * g.value(),), (g.unit,))[1]
        total = total + float(share) * change
    return total


def increment(f: Callable[[Tensor], Tensor], common: Tensor, rest: Scaled) -> Tensor:
    """Return f(x + R_i) - f(x) at the scale of R, for x with one row (K, B, ..., 1, D) and any smooth f of one token's state (..., D), as
    tested by `token_wise`."""
    x = common.expand_as(rest.unit)
    slope = mean_slope(f, x, rest)
    # Where R is not small compared with x, the quadrature is inexact and subtraction is precise.
    near = rest.log < math.log(VISIBLE) + common.abs().flatten(2).amax(2).log()
    direct = (f(x + rest.value()) - f(x)) / rest.scale.clamp_min(1e-300)
    return torch.where(spread(near, slope), slope, direct)


def norm(function: Any, state: State) -> State:
    """Return N(X) as a split state."""
    if unbound(function)[0] is none:
        return state
    full = function(state.full())
    for form, centred in ((Layer, True), (Rms, False)):
        if keeps_form(function, form, "forward", "plain"):
            rest = shrunk(state, function.eps, centred)
            return state.advance(full, rest.map(rest.unit * function.gain))
    if keeps_form(function, ColumnNorm, "forward", "plain"):
        if len(state.others):
            raise Unknown("a column norm scales tokens by sentinels too: no centred form")
        rest = columns(state.rest, function.eps)
        # The mean over tokens is exactly the bias; the ordinary output is 0 / 0 where rows are equal.
        return state.advance(function.bias.expand_as(full), rest.map(rest.unit * function.gain))
    token_wise(function, state.full(), "norm")
    return state.advance(full, state.rest.map(increment(function, state.common, state.rest)))


def shrunk(state: State, eps: float, centred: bool) -> Scaled:
    """Return y_i / sqrt(v_i) - y / sqrt(v) with v_i = mean(y_i^2) + eps, y_i = y + R_i (features centred or not).

    This equals R_i / sqrt(v_i) - y d_i / (sqrt(v_i v) (sqrt(v_i) + sqrt(v))) with d_i = v_i - v = mean(2 y R_i + R_i^2).
    """
    y, r = state.common, state.rest.unit
    if centred:
        y, r = y - y.mean(-1, keepdim=True), r - r.mean(-1, keepdim=True)
    scale = state.rest.scale
    grown = (2 * y * r + scale * r.square()).mean(-1, keepdim=True)  # d, at the scale of R
    v = y.square().mean(-1, keepdim=True) + eps
    root = v.sqrt()
    # Not v + scale * grown, which loses digits where R is much larger than y.
    root_i = ((y + scale * r).square().mean(-1, keepdim=True) + eps).sqrt()
    return state.rest.map(r / root_i - y * grown / (root_i * root * (root_i + root)))


def columns(rest: Scaled, eps: float) -> Scaled:
    """Return R / sqrt(mean over tokens of R^2 + eps), of order one for any R above sqrt(eps)."""
    variance = rest.unit.square().mean(-2, keepdim=True)
    half = 0.5 * math.log(eps) if eps > 0 else -math.inf
    top = rest.log.clamp_min(half)  # (K, B): a scale at which neither R nor eps under- or overflows
    top = torch.where(top.isfinite(), top, torch.zeros_like(top))
    size = variance * spread((2 * (rest.log - top)).exp(), variance) + spread((2 * (half - top)).exp(), variance)
    unit = torch.where(size > 0, rest.unit / size.clamp_min(torch.finfo(size.dtype).tiny).sqrt(), 0.0)
    return Scaled(unit, rest.log - top)
