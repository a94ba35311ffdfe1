"""Rules of normalisers that are not Rankfall's: one that its author writes beside it, or weights in parts from its derivatives.

A function `sharp_centred` beside `sharp`, or a method `centred` of a class, takes the parts of the scores (`scores.py`) and the
normaliser's options, and returns `Weights` (`weights.py`). Before it is used, it is tested on rows that differ enough for subtraction to
be precise. Any other smooth normaliser f is differentiated along the differences between rows:

    f(x + g_i) - f(x) = integral over t in [0, 1] of J_f(x + t g_i) g_i

has full precision at any scale of g, because g is a factor. But terms that cancel must be left out. There may be three kinds of them,
which tests detect (`Traits`). With scores x_ij = c + r_j + a_i + E_ij (`scores.py`), c the same for all keys, r and a of order R, E
of its square:

- for many normalisers a score a_i common to a row has no effect: then rows differ by E only;
- or it has no effect where all scores of a row are equal, f(c 1 + a 1) = f(c 1): then it acts through a second derivative, along r and
  a;
- row sums may be constant, or stationary where all scores of a row are equal: then E acts through a second derivative, along r + t E and
  E, and a through a third, along r, r and a.

Integrals are Gauss-Legendre sums. Where R is large enough they are compared with the plain difference.
"""

import inspect
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rankfall.rank.centred.assumptions import NEAR, SLOPE, Unknown, draw_like, same, unbound
from rankfall.rank.centred.scaled import Scaled, add, normal, plain
from rankfall.rank.centred.scores import Scores
from rankfall.rank.centred.weights import Weights

Map = Callable[[Tensor], Tensor]

TINY = 1e-13  # relative to a slope; smaller changes count as zero, such as 1e-14 added to a denominator
FAR = 30.0  # a common score that reveals a term added to a denominator, or a cap on scores
STEP = 1e-6  # step away from equal scores, to detect a kink there
NODES, FEW = 8, 2  # nodes of a sum; FEW give full precision where the scale is below e^INVISIBLE
INVISIBLE = -20.0
AT_ONCE = 2**21  # numbers of one call of the normaliser: 16 MB, of which derivatives take several
# Error of the plain difference: relative to itself, and to the two values that it subtracts.
CLOSE, LOST = 1e-8, 1e-12
CLEAR = 1e-5  # relative to the weights: a difference above this has enough digits by subtraction
TRIED = math.log(1e-3)  # log size of a query's or key's part of a score in the test; a pair's part has twice this log
DIGITS = 1e-5  # relative tolerance of the differences in the test


def find_written_rule(normaliser: Any) -> Callable[[Scores], Weights] | None:
    """Return the rule written beside a normaliser, with its options bound, or None if there is none."""
    if hasattr(type(normaliser), "centred"):
        rule: Callable[[Scores], Weights] = normaliser.centred
        return rule
    function, options = unbound(normaliser)
    if not inspect.isfunction(function):
        return None
    written = getattr(sys.modules.get(function.__module__), f"{function.__name__}_centred", None)
    return None if written is None else partial(written, **options)


def check_rule(rule: Callable[[Scores], Weights], f: Callable[[Tensor], Tensor], s: Scores, name: str) -> None:
    """Raise `Unknown` unless a rule agrees with subtraction on the differences of rows of f and of their sums."""
    trial = replace(s, key=at_scale(s.key, TRIED), query=at_scale(s.query, TRIED), both=at_scale(s.both, 2 * TRIED))
    p = f(trial.base + trial.key.value() + trial.query.value() + trial.both.value())
    weights = rule(trial)
    sums = plain(p.sum(-1, keepdim=True) * 0) if weights.sums is None else weights.sums
    for subtracted, ruled in ((p, weights.rows), (p.sum(-1, keepdim=True), sums)):
        expected, actual = (x - x.mean(-2, keepdim=True) for x in (subtracted, ruled.value()))
        allowed = DIGITS * expected.abs().flatten(1).amax(1) + 1e-13 * p.abs().flatten(1).amax(1)  # (K,)
        if actual.shape != expected.shape or bool(((actual - expected).abs().flatten(1).amax(1) > allowed).any()):
            raise Unknown(f"the centred form beside {name} does not agree with {name}: no centred form")


def at_scale(x: Scaled, log: float) -> Scaled:
    """Return the same direction at another scale; zeros stay zero."""
    return Scaled(x.unit, x.log.clamp(log, log).where(x.log.isfinite(), x.log))


@dataclass(frozen=True)
class Traits:
    shift: str  # effect of a score common to a row: none ("forgotten"), none where scores are equal ("level"), or some ("felt")
    sums: str  # row sums are "constant", stationary where scores are equal ("level"), or change at first order ("felt")


def slope(f: Map, x: Tensor, *along: Tensor) -> Tensor:
    """Return the derivative of f at x along these directions, one order for each."""
    if not along:
        return f(x)
    *others, last = along
    derivative: Tensor = torch.func.jvp(lambda y: slope(f, y, *others), (x.contiguous(),), (last.contiguous(),))[1]
    return derivative


def treats_rows_alike(f: Map, like: Tensor) -> bool:
    """Check whether f treats all rows of scores like (K, B, H, T, J) alike, and each independently of other rows and samples."""
    x = draw_like(like)
    y = f(x)
    alone = x[:, :1, :, :1].expand_as(x).contiguous()
    return same(f(x.roll((1, 1), (1, 3))), y.roll((1, 1), (1, 3))) and same(f(alone), y[:, :1, :, :1].expand_as(y))


def is_single_precision(f: Map, like: Tensor) -> bool:
    """Check whether f computes in less than float64 and so rounds rows, for scores like (K, B, H, T, J)."""
    y = f(draw_like(like) / 10)
    return bool((y == y.float().double()).all())


def traits(f: Map, base: Tensor, level: bool) -> Traits:
    """Detect the properties of a normaliser that treats rows alike, near the scores that all rows share (K, B, H, T, J)."""
    x, along = draw_like(base), draw_like(base, 1)
    common = draw_like(base[..., :1], 2).expand_as(base)  # a score for each row
    y = f(x / 10)
    try:
        steep = slope(f, x / 10, along)
        edge = slope(f, base + STEP * x, along), slope(f, base, along)
        slope(f, base, along, along, along)
    except (RuntimeError, NotImplementedError) as error:
        raise Unknown("the normaliser has no forward derivatives: no centred form") from error
    quotient = (f(x / 10 + NEAR * along) - f(x / 10 - NEAR * along)) / (2 * NEAR)
    if bool(((steep - quotient).flatten(1).norm(dim=1) > SLOPE * quotient.flatten(1).norm(dim=1)).any()):
        raise Unknown("the slope of the normaliser is not its derivative: no centred form")
    if bool(((edge[0] - edge[1]).flatten(1).norm(dim=1) > SLOPE * edge[1].flatten(1).norm(dim=1)).any()):
        raise Unknown("the slope of the normaliser jumps at the scores that all rows share: no centred form")

    def sums(z: Tensor) -> Tensor:
        return f(z).sum(-1, keepdim=True)

    def still(g: Map, direction: Tensor, *points: Tensor) -> bool:
        """Check whether the slope of g in this direction is zero, compared with that of f."""
        return all(is_rounding(slope(g, z, direction), slope(f, z, along)) for z in points)

    anywhere, everywhere_level = (x, x / 10, base), (common, common / 10, base + common)
    shift, total = "felt", "felt"
    if level and still(f, common, *everywhere_level):
        shift = "level"
    if still(f, common, *anywhere) and all(same(f(x / 10 + far), y) for far in (FAR, -FAR)):
        shift = "forgotten"
    if level and still(sums, along, *everywhere_level):
        total = "level"
    ones = y.sum(-1, keepdim=True)
    if still(sums, along, *anywhere) and all(same(sums(z), ones, y) for z in (x, x / 10 + FAR, x / 10 - FAR)):
        total = "constant"
    return Traits(shift, total)


def is_rounding(change: Tensor, beside: Tensor) -> bool:
    """Check whether a change is rounding compared with another, for each member (K, ...); NaN counts as zero."""
    size = TINY * beside.nan_to_num().flatten(1).abs().amax(1)
    return bool((change.nan_to_num().flatten(1).abs().amax(1) <= size).all())


def derive_weights(function: Map, traits: Traits, s: Scores) -> Weights:
    """Return weights in parts, with `holds` where they agree with the ordinary ones."""
    shape = s.both.unit.shape
    base, r = s.base.expand(shape), s.key.map(s.key.unit.expand(shape))

    def sums(x: Tensor) -> Tensor:
        return function(x).sum(-1, keepdim=True)

    if s.level:
        a = s.query.map(s.query.unit[..., :1].expand(shape))  # the same for all keys
        rows = add(*row_parts(function, traits.shift, base, r, a, s.both))
        total = list(sum_parts(sums, traits, base, r, a, s.both))
    else:
        g = s.both if s.shared and traits.shift == "forgotten" else add(s.query, s.both)
        rows = first(function, base + r.value(), g)
        total = [first(sums, base + r.value(), g)]
    weights = Weights(rows, None if traits.sums == "constant" else add(*total))
    return Weights(rows, weights.sums, agrees(function, s, weights, traits.sums == "constant"))


def row_parts(f: Map, shift: str, c: Tensor, r: Scaled, a: Scaled, e: Scaled) -> Iterator[Scaled]:
    """Yield the parts of f(c + r + a + E) - f(c + r)."""
    if shift == "forgotten":
        yield first(f, c + r.value(), e)
        return
    yield first(f, c + r.value() + a.value(), e)
    yield second(f, c, r, a) if shift == "level" else first(f, c + r.value(), a)


def sum_parts(f: Map, traits: Traits, c: Tensor, r: Scaled, a: Scaled, e: Scaled) -> Iterator[Scaled]:
    """Yield the parts of the difference of row sums."""
    if traits.sums != "level":
        yield from row_parts(f, traits.shift, c, r, a, e)
        return
    common = c if traits.shift == "forgotten" else c + a.value()
    for t, share in nodes(e):
        way = add(r, e.map(t * e.unit))  # the part that differs between keys
        points = [(share * part, common + u * way.value()) for u, part in nodes(way)]
        yield normal(weighted_slopes(f, points, way.unit, e.unit), way.log + e.log)
    if traits.shift != "forgotten":
        points = [
            (share * part * (1 - u), c + t * a.value() + u * r.value()) for t, share in nodes(a) for u, part in nodes(r)
        ]
        yield normal(weighted_slopes(f, points, r.unit, r.unit, a.unit), 2 * r.log + a.log)


def first(f: Map, x: Tensor, g: Scaled) -> Scaled:
    """Return f(x + G) - f(x), by an integral over the first derivative."""
    return g.map(weighted_slopes(f, [(share, x + t * g.value()) for t, share in nodes(g)], g.unit))


def second(f: Map, c: Tensor, r: Scaled, a: Scaled) -> Scaled:
    """Return f(c + r + a) - f(c + r) if f(c + a) = f(c), by an integral over the second derivative."""
    points = [(share * part, c + t * a.value() + u * r.value()) for t, share in nodes(a) for u, part in nodes(r)]
    return normal(weighted_slopes(f, points, r.unit, a.unit), r.log + a.log)


def weighted_slopes(f: Map, points: list[tuple[float, Tensor]], *along: Tensor) -> Tensor:
    """Return the weighted sum of derivatives of f at points (K, B, H, T, J) along these directions.

    Points are further samples of one call, since f treats samples alike.
    """
    total, at_once = torch.zeros(()), max(1, AT_ONCE // along[0].numel())
    for begin in range(0, len(points), at_once):
        shares, places = zip(*points[begin : begin + at_once])
        directions = (torch.cat([direction] * len(places), 1) for direction in along)
        slopes = slope(f, torch.cat(places, 1), *directions)  # (K, N B, H, T, J)
        total = total + sum(share * change for share, change in zip(shares, slopes.chunk(len(places), 1)))
    return total


def nodes(g: Scaled) -> list[tuple[float, float]]:
    """Return nodes in [0, 1] and their weights, for an integral along G."""
    nodes_, shares = np.polynomial.legendre.leggauss(NODES if float(g.log.max()) > INVISIBLE else FEW)
    return [(float(node + 1) / 2, float(share) / 2) for node, share in zip(nodes_, shares)]


def agrees(f: Map, s: Scores, weights: Weights, constant: bool) -> Tensor:
    """Return where (K, B) the weights agree with the plain difference, within its precision.

    They disagree where the slope of f changes too fast between rows. Weights whose sums are constant may be small because terms cancel
    in them, so their precision is that of their usual size.
    """
    q = f((s.base + s.key.value()).expand_as(s.both.unit))
    x = s.base + s.key.value() + s.query.value() + s.both.value()
    p = f(x)
    size = torch.maximum(largest(p), largest(f(draw_like(x) / 10))) if constant else largest(p)
    lost = LOST * size * (1 + largest(x))
    direct = p - q
    agreeing = largest(direct - weights.rows.value()) <= lost + CLOSE * largest(direct)
    if weights.sums is not None:
        total = direct.sum(-1, keepdim=True)
        agreeing = agreeing & (largest(total - weights.sums.value()) <= p.shape[-1] * lost + CLOSE * largest(direct))
    known = agreeing | (largest(direct) > CLEAR * largest(p)) | ~p.flatten(2).isfinite().all(2)
    if not bool(known.all()):
        raise Unknown("the slope of the normaliser changes too fast between similar rows: no centred form")
    return agreeing


def largest(x: Tensor) -> Tensor:
    """Return the largest absolute value of the entries (K, B)."""
    return x.abs().flatten(2).amax(2)
