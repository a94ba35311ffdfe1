"""Attention weights in two parts, P_ij = q_j + D_ij, with D and its row sums at full relative precision, however similar the rows are.

Each normaliser needs its own algebra, because different terms cancel: a score common to a row has no effect on softmax or l2, and the
row sums of l2 do not change to first order. Terms that cancel must be left out of the formula. A rule takes the parts of the scores
(`scores.py`) and returns `Weights`. Where rows differ by much, ordinary weights are used instead (`attention.py` chooses).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import silu

from rankfall.rank.centred.assumptions import find_imported, function_name, keeps_form, unbound
from rankfall.rank.centred.scaled import Scaled, add, expm1, normal, plain, times
from rankfall.rank.centred.scores import Scores


@dataclass(frozen=True)
class Weights:
    rows: Scaled  # D (K, B, H, T, J): each row of P minus the part common to all rows
    sums: Scaled | None  # row sums of P minus their common part (K, B, H, T, 1); None: exactly zero
    holds: Tensor | None = None  # (K, B): where the rule is valid; None: everywhere


Rule = Callable[[Scores], Weights]
NORMALISERS = "rankfall.nets.normalisers."  # known by name (`find_imported`)


def rule_of(normaliser: Any) -> Rule | None:
    """Return the rule for a network's normaliser, or None if there is none."""
    if is_urpe(normaliser):
        excess = normaliser.excess
        # Equal factors scale every weight alike. Unequal factors make rows differ at order one, which needs no rule.
        same = bool((excess == excess[..., :1]).all())
        return partial(softmax_rule, factor=1 + excess[..., :1].unsqueeze(-1)) if same else None
    rules: dict[str, Callable[..., Weights]] = {
        "softmax": softmax_rule,
        "l2": l2_rule,
        "swish_l2": swish_l2_rule,
        "exp": exp_rule,
        "sigmoid": sigmoid_rule,
        "relu2": relu2_rule,
        "softmax_off_by_one": off_by_one_rule,
    }
    rule = rules.get(library_normaliser(normaliser))
    return partial(rule, **unbound(normaliser)[1]) if rule else None


def sums_to_one(normaliser: Any) -> bool:
    """Check, by the normaliser's form, whether rows sum to the same constant for all scores.

    Computed sums would differ by rounding.
    """
    if is_urpe(normaliser):
        return bool((normaliser.excess == normaliser.excess[..., :1]).all())
    return library_normaliser(normaliser) == "softmax"


def is_urpe(normaliser: Any) -> bool:
    return keeps_form(normaliser, f"{NORMALISERS}urpe:Urpe", "forward", "factors")


def library_normaliser(normaliser: Any) -> str:
    """Return the name of a function among Rankfall's normalisers; empty for any other component, whatever its name."""
    function, name = unbound(normaliser)[0], function_name(normaliser).rpartition(":")[2]
    return name if find_imported(f"{NORMALISERS}{name}:{name}") is function else ""


def columns(s: Scores) -> Tensor:
    """Return lambda_j, the part of the scores that all rows share (K, B, H, 1, J)."""
    return s.base + s.key.value()


def differences(s: Scores, shift_cancels: bool) -> Scaled:
    """Return G_ij, the addition of row i to lambda_j, without a score common to a row if it has no effect on the normaliser."""
    return s.both if s.shared and shift_cancels else add(s.query, s.both)


def softmax_rule(s: Scores, factor: Tensor | None = None) -> Weights:
    """Return the weights of softmax, times the equal factors (K, 1, H, 1, 1) of URPE.

    P_ij / q_j = e^{G_ij} / sum_k q_k e^{G_ik}, so D_ij = q_j (u_ij - m_i) / (1 + m_i), u = e^G - 1, m_i = sum_k q_k u_ik.
    """
    rows = softmax_rows(columns(s).softmax(-1), expm1(differences(s, True)))
    return Weights(rows if factor is None else rows.map(rows.unit * factor), None)


def softmax_rows(common: Tensor, u: Scaled) -> Scaled:
    mean = (common * u.unit).sum(-1, keepdim=True)
    return u.map(common * (u.unit - mean) / (1 + u.scale * mean))


def off_by_one_rule(s: Scores) -> Weights:
    """Return the weights of a softmax with one more key, of score zero in every row. Its weight is what row sums lack of one."""
    g = differences(s, False)
    silent = torch.zeros_like(g.unit[..., :1])
    common = torch.cat([columns(s), torch.zeros_like(s.base[..., :1])], -1).softmax(-1)
    rows = softmax_rows(common, expm1(g.map(torch.cat([g.unit, silent], -1))))
    return Weights(rows.map(rows.unit[..., :-1]), rows.map(-rows.unit[..., -1:]))


def entrywise(rows: Scaled) -> Weights:
    """Return weights for normalisers without a denominator, whose row sums differ by the sums of D."""
    return Weights(rows, rows.map(rows.unit.sum(-1, keepdim=True)))


def exp_rule(s: Scores) -> Weights:
    """Return the weights of exp: D_ij = e^{lambda_j} (e^{G_ij} - 1)."""
    u = expm1(differences(s, False))
    return entrywise(u.map(columns(s).exp() * u.unit))


def sigmoid_rule(s: Scores, shift: float | None = None) -> Weights:
    """Return the weights of sigmoid: sigma(y) - sigma(x) = sigma(x) sigma(-y) (e^{y-x} - 1)."""
    g = differences(s, False)
    return entrywise(sigmoid_step(columns(s) + (-math.log(g.unit.shape[-1]) if shift is None else shift), g))


def sigmoid_step(x: Tensor, g: Scaled) -> Scaled:
    u = expm1(g)
    return u.map(x.sigmoid() * (-x - g.value()).sigmoid() * u.unit)


def relu2_rule(s: Scores, tokens: int | None = None) -> Weights:
    """Return the weights of relu^2: (y+)^2 - (x+)^2 = (y+ - x+) (y+ + x+), and y+ - x+ = G wherever neither is clipped."""
    g, x = differences(s, False), columns(s)
    y = x + g.value()
    scale = g.scale.clamp_min(1e-300)
    step = torch.where((x > 0) & (y > 0), g.unit, (y.relu() - x.relu()) / scale)  # only a large G crosses the kink
    step = torch.where((x <= 0) & (y <= 0), torch.zeros_like(step), step)
    return entrywise(g.map(step * (y.relu() + x.relu()) / (tokens or g.unit.shape[-1])))


def l2_rule(s: Scores) -> Weights:
    """Return the weights of l2: P_ij = e^{lambda_j + G_ij} / sqrt(sum_k e^{2 (lambda_k + G_ik)})."""
    u = expm1(differences(s, True))
    f = (columns(s) - columns(s).amax(-1, keepdim=True)).exp()
    spread = expm1(s.key) if s.level else None  # f_j / f_0 - 1, at the scale of R
    return unit_rows(f, u, spread)


def swish_l2_rule(s: Scores) -> Weights:
    """Return the weights of swish_l2: P_ij = f(b_ij) / sqrt(sum_k f(b_ik)^2) with f(b) = b sigma(b).

    A factor common to a row cancels. Where base is level, f(c + a_i) / f(c) cancels too. With b_ij = c + r_j + a_i + E_ij, the remaining
    part is 1 + w_ij = f(c+r+a+E) f(c) / (f(c+r) f(c+a)): a second difference of log f = log b + log sigma(b), computed for each of the
    two terms.
    """
    x = columns(s)
    if not s.level:
        step = silu_step(x, differences(s, False))
        return unit_rows(silu(x), step.divide_by(silu(x)), None)
    c, r, e = s.base, s.key, s.both
    a = s.query.map(s.query.unit[..., :1])  # the same for all keys
    linear = add(e.map(c * e.unit), negative(times(r, a))).divide_by(x * (c + a.value()))
    odds, rho, alpha = (-c).exp(), (-r.value()).exp(), (-a.value()).exp()
    first = times(expm1(negative(r)), expm1(negative(a)))
    second = expm1(negative(e))
    curve = add(first.map(first.unit * odds), second.map(second.unit * (odds * rho * alpha * (1 + odds))))
    curve = curve.divide_by((1 + odds * rho) * (1 + odds * alpha))
    w = add(linear, negative(curve)).divide_by(1 + curve.value())
    weights = unit_rows(silu(x), w, silu_step(c, r).divide_by(silu(c)))
    # If the common score of a row changes sign, all its weights do, and the factor does not cancel.
    return replace(weights, holds=(a.value().abs() < 0.5 * c.abs()).flatten(2).all(2))


def silu_step(x: Tensor, g: Scaled) -> Scaled:
    """Return f(x + G) - f(x) = G sigma(x + G) + x (sigma(x + G) - sigma(x)) for f(x) = x sigma(x)."""
    return add(g.map(g.unit * (x + g.value()).sigmoid()), times(sigmoid_step(x, g), plain_like(x, g)))


def unit_rows(f: Tensor, u: Scaled, spread: Scaled | None) -> Weights:
    """Return rows f_j (1 + u_ij) divided by their length.

    P_ij = q_j (1 + u_ij) / n_i, q = f / |f|, n_i^2 = sum_k q_k^2 (1 + u_ik)^2. With n_i - 1 = (2 mu_i + sum_k q_k^2 u_ik^2) / (1 + n_i)
    and mu_i = sum_k q_k^2 u_ik, D_ij = q_j (u_ij - (n_i - 1)) / n_i. Row sums need care: where all f are equal their first-order change
    vanishes, because equal entries have the largest sum of all rows of length one. With S = sum_j q_j,

        n_i sum_j D_ij = sum_j q_j (1 - S q_j) u_ij - S (sum_k q_k^2 u_ik^2 - mu_i (n_i - 1)) / (2 + (n_i - 1)),

    where 1 - S q_j = sum_k f_k (f_k - f_j) / sum_k f_k^2. `spread`, f_j / f_0 - 1 for a constant f_0, keeps its precision when f is
    nearly constant.
    """
    q = f / f.norm(dim=-1, keepdim=True)
    share, total = q.square(), q.sum(-1, keepdim=True)
    mean = (share * u.unit).sum(-1, keepdim=True)
    square = (share * u.unit.square()).sum(-1, keepdim=True)  # at the scale of u squared
    excess = 2 * mean + u.scale * square
    length = (1 + u.scale * excess).sqrt()
    grown = excess / (1 + length)  # n - 1, at the scale of u
    rows = u.map(q * (u.unit - grown) / length)
    if spread is None:
        tilt = plain_like(q * (1 - total * q), u)
    else:
        g = 1 + spread.value()
        gaps = spread.unit.unsqueeze(-2) - spread.unit.unsqueeze(-1)  # (..., j, k): at [j, k], spread_k - spread_j
        tilt = spread.map(q * (g.unsqueeze(-2) * gaps).sum(-1) / g.square().sum(-1, keepdim=True))
    first = normal((tilt.unit * u.unit).sum(-1, keepdim=True), tilt.log + u.log)
    second = normal(total * (square - mean * grown) / (2 + u.scale * grown), 2 * u.log)
    return Weights(rows, add(first, negative(second)).divide_by(length))


def negative(x: Scaled) -> Scaled:
    return Scaled(-x.unit, x.log)


def plain_like(x: Tensor, like: Scaled) -> Scaled:
    """Convert an ordinary tensor, expanded to the members and samples of another."""
    return plain(x.expand(*like.unit.shape[:2], *x.shape[2:]))
