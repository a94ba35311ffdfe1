"""A split state (`scaled.py`) through any smooth map of states, such as a custom attention or block, by derivatives of the map itself.

With C, which subtracts the mean of the token rows, and g(t) = C f(1 x^T + t R), R of size e^r,

    g(1) = sum_{k < p} g^(k)(0) / k!  +  integral over t in [0, 1] of (1 - t)^(p - 1) / (p - 1)! g^(p)(t)

where g^(p) is the p-th derivative of f along R. The part that rows share cancels in C: g(0) = 0 if equal rows come out equal. Higher
terms vanish as well where an attention contracts faster, up to the second for softmax. By subtraction these terms would be rounding,
which outweighs the integral once R is small. So they are left out: p is the first derivative that does not vanish, the layer's order of
contraction, and the integral has full precision at any scale, because R^p is a factor.

A derivative counts as zero if its rows differ by less than TINY of its size. Otherwise they must differ by more than CLEAR, or too few
digits are left. Rows that differ at order one (p = 0), and rows that are far apart, are subtracted. Where the two methods disagree, for
example because a kink lies between rows, subtraction is used if it has enough digits; otherwise there is no centred form.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from rankfall.errors import RankfallError, describe_error
from rankfall.rank.centred.assumptions import SLOPE, Unknown, draw_like
from rankfall.rank.centred.derived import Map, largest, slope
from rankfall.rank.centred.scaled import Scaled, State, normal, plain, where

MOST = 4  # highest derivative considered: each takes twice the time of the one before
TINY, CLEAR = 1e-12, 1e-8
# Nodes of the integral; FEW where the scale is below e^INVISIBLE and only R^p matters.
NODES, FEW, INVISIBLE = 8, 3, -20.0
APART = 1e-4  # rows that differ by more, relative to their size, are subtracted
# Tolerance between subtraction and the integral: relative to rows, and to their difference.
LOST, CLOSE = 1e-12, 1e-6
STEP = 1e-7  # of difference quotients: small enough to reveal single precision


def expand_map(function: Callable[[Tensor], Tensor], state: State, name: str) -> State:
    """Return f(X) as a split state. `name` is the name of the map in error messages."""
    try:
        return expansion(function, state)
    except Unknown as reason:
        raise Unknown(f"{name}: {reason}") from reason
    except (MemoryError, torch.OutOfMemoryError, RankfallError):
        raise
    except Exception as error:  # a component may raise any error when it is called differently than by a network
        raise Unknown(f"{name}: it cannot be differentiated ({describe_error(error)}): no centred form") from error


def expansion(function: Callable[[Tensor], Tensor], state: State) -> State:
    full = state.full()
    unequal = state.rest.log.isfinite()  # (K, B): where rows differ at all
    base = state.assemble(state.common.expand_as(state.rest.unit), state.sentinels)  # (K, B, S + T, D)
    along = state.assemble(state.rest.unit, torch.zeros_like(state.sentinels))
    size = base.abs().flatten(2).amax(2).view(*base.shape[:2], 1, 1)  # (K, B, 1, 1)
    # Rows that differ by much: a term that vanishes here too does not vanish because rows are equal.
    away = base + 0.1 * size * draw_like(base).clamp(-3, 3)

    def f(x: Tensor) -> Tensor:
        return function(x)[..., state.tokens, :]

    check_slopes(f, base, away, 0.1 * size * draw_like(base, 1).clamp(-3, 3))
    output = function(full)
    usual_size = torch.maximum(largest(f(base)), largest(f(away)))  # (K, B)
    if bool((largest(output[..., state.tokens, :].mean(-2, keepdim=True)) <= CLOSE**2 * usual_size).any()):
        raise Unknown("its common output row cancels up to rounding: no centred form")
    order = first_order(f, base, away, along, unequal)
    direct = plain(center_rows(output[..., state.tokens, :]))
    if order == 0:
        return state.advance(output, direct)
    rest = remainder(f, base, state, along, order)
    difference = direct.log.exp()  # (K, B): size of the largest entry
    agreeing = largest(direct.value() - rest.value()) <= LOST * usual_size + CLOSE * difference
    if not bool((agreeing | (difference > CLEAR * usual_size)).all()):
        raise Unknown("its derivatives change too fast between similar rows: no centred form")
    return state.advance(output, where((difference > APART * usual_size) | ~agreeing, direct, rest))


def first_order(f: Map, base: Tensor, away: Tensor, along: Tensor, unequal: Tensor) -> int:
    """Return the order of the first derivative along R that differs between rows, the same for all members and samples."""
    for order in range(MOST + 1):
        relevant = unequal if order else torch.ones_like(unequal)
        at_equal_rows, far = slopes_at(f, (base, away), *[along] * order)
        size = torch.maximum(largest(at_equal_rows), largest(far))
        if not bool((size.isfinite() | ~relevant).all()):
            raise Unknown(f"derivative {order} is not finite: no centred form")
        share = largest(center_rows(at_equal_rows)) / size.clamp_min(torch.finfo(size.dtype).tiny)  # (K, B)
        differs = share[relevant] > TINY
        if not bool(differs.any()):
            continue
        if not bool((share[relevant] > CLEAR).all()):
            raise Unknown(
                f"derivative {order} differs between rows by {float(share[relevant].min()):.0e} of its size, too little to distinguish "
                "from rounding: no centred form"
            )
        return order
    if not bool(unequal.any()):
        return 1  # rows are equal and stay so
    raise Unknown(f"rows do not differ in its first {MOST} derivatives: no centred form")


def remainder(f: Map, base: Tensor, state: State, along: Tensor, order: int) -> Scaled:
    """Return the integral, for rows (K, B, T, D)."""
    log = state.rest.log
    deep = not bool((log > INVISIBLE).any())
    nodes, shares = (
        torch.from_numpy(part / 2).to(base) for part in np.polynomial.legendre.leggauss(FEW if deep else NODES)
    )
    nodes, count = (nodes + 0.5).view(-1, 1, 1), len(nodes)
    factors = shares.view(-1, 1, 1) * (1 - nodes) ** (order - 1) / math.factorial(order - 1)
    points = base.unsqueeze(2) + nodes * (along * state.rest.scale).unsqueeze(2)  # (K, B, nodes, S + T, D)
    wide = along.unsqueeze(2).expand_as(points).flatten(1, 2)
    derivatives = slope(f, points.flatten(1, 2), *[wide] * order)  # nodes are samples like others
    derivatives = derivatives.unflatten(1, (-1, count))  # (K, B, nodes, T, D)
    total = (factors * derivatives).sum(2)
    return normal(center_rows(total), torch.where(log.isfinite(), order * log, -torch.inf))


def check_slopes(f: Map, base: Tensor, away: Tensor, along: Tensor) -> None:
    """Raise `Unknown` unless f is smooth enough at both places, with all the digits of its input."""
    values = slopes_at(f, [x + step * along for x in (base, away) for step in (STEP, -STEP)])
    quotients = [(after - before) / (2 * STEP) for after, before in zip(values[::2], values[1::2])]
    # (K,); at equal rows alone it may vanish.
    size = torch.maximum(*(quotient.flatten(1).norm(dim=1) for quotient in quotients))
    for derivative, quotient in zip(slopes_at(f, (base, away), along), quotients):
        if not bool(((derivative - quotient).flatten(1).norm(dim=1) <= SLOPE * size).all()):
            raise Unknown(
                "its slope is not its derivative, as where a gradient is cut, numbers are rounded to single precision, or equal rows lie "
                "on a kink: no centred form"
            )


def slopes_at(f: Map, points: Sequence[Tensor], *along: Tensor) -> tuple[Tensor, ...]:
    """Return the derivatives of f at each point (K, B, S + T, D) along these directions. Points are further samples of one call."""
    directions = (torch.cat([direction] * len(points), 1) for direction in along)
    return slope(f, torch.cat(list(points), 1), *directions).chunk(len(points), 1)


def center_rows(rows: Tensor) -> Tensor:
    return rows - rows.mean(-2, keepdim=True)
