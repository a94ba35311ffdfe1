"""Weights in parts (`weights.py`) of any smooth normaliser, from its derivatives along the differences between rows.

    f(x + g_i) - f(x) = integral over t in [0, 1] of J_f(x + t g_i) g_i

has full precision at any scale of g, because g is a factor. But terms that cancel must be left out. There may be three kinds of them,
which tests detect (`traits.py`). With scores x_ij = c + r_j + a_i + E_ij (`scores.py`), c the same for all keys, r and a of order R, E
of its square:

- for many normalisers a score a_i common to a row has no effect: then rows differ by E only;
- or it has no effect where all scores of a row are equal, f(c 1 + a 1) = f(c 1): then it acts through a second derivative, along r and
  a;
- row sums may be constant, or stationary where all scores of a row are equal: then E acts through a second derivative, along r + t E and
  E, and a through a third, along r, r and a.

Integrals are Gauss-Legendre sums. Where R is large enough they are compared with the plain difference.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from rankfall.rank.centred.assumptions import Unknown, draw_like
from rankfall.rank.centred.scaled import Scaled, add, normal
from rankfall.rank.centred.scores import Scores
from rankfall.rank.centred.traits import Map, Traits, slope
from rankfall.rank.centred.weights import Weights

NODES, FEW = 8, 2  # nodes of a sum; FEW give full precision where the scale is below e^INVISIBLE
INVISIBLE = -20.0
CLOSE, LOST = (
    1e-8,
    1e-12,
)  # error of the plain difference: relative to itself, and to the two values that it subtracts
CLEAR = 1e-5  # relative to the weights: a difference above this has enough digits by subtraction


def derive_weights(function: Map, traits: Traits, s: Scores) -> Weights:
    """Return weights in parts, with `holds` where they agree with the ordinary ones."""
    shape = s.both.unit.shape
    base, r = s.base.expand(shape), s.key.map(s.key.unit.expand(shape))

    def sums(x: Tensor) -> Tensor:
        return function(x).sum(-1, keepdim=True)

    if s.level:
        a = s.query.map(s.query.unit[..., :1].expand(shape))  # the same for all keys
        rows = add(*of_rows(function, traits.shift, base, r, a, s.both))
        total = list(of_sums(sums, traits, base, r, a, s.both))
    else:
        g = s.both if s.shared and traits.shift == "forgotten" else add(s.query, s.both)
        rows = first(function, base + r.value(), g)
        total = [first(sums, base + r.value(), g)]
    found = Weights(rows, None if traits.sums == "constant" else add(*total))
    return Weights(rows, found.sums, agrees(function, s, found, traits.sums == "constant"))


def of_rows(f: Map, shift: str, c: Tensor, r: Scaled, a: Scaled, e: Scaled) -> Iterator[Scaled]:
    """Yield the parts of f(c + r + a + E) - f(c + r)."""
    if shift == "forgotten":
        yield first(f, c + r.value(), e)
        return
    yield first(f, c + r.value() + a.value(), e)
    yield second(f, c, r, a) if shift == "level" else first(f, c + r.value(), a)


def of_sums(f: Map, traits: Traits, c: Tensor, r: Scaled, a: Scaled, e: Scaled) -> Iterator[Scaled]:
    """Yield the parts of the difference of row sums."""
    if traits.sums != "level":
        yield from of_rows(f, traits.shift, c, r, a, e)
        return
    common = c if traits.shift == "forgotten" else c + a.value()
    for t, share in nodes(e):
        way = add(r, e.map(t * e.unit))  # the part that differs between keys
        for u, part in nodes(way):
            change = slope(f, common + u * way.value(), way.unit, e.unit)
            yield normal(share * part * change, way.log + e.log)
    if traits.shift != "forgotten":
        for t, share in nodes(a):
            for u, part in nodes(r):
                change = slope(f, c + t * a.value() + u * r.value(), r.unit, r.unit, a.unit)
                yield normal(share * part * (1 - u) * change, 2 * r.log + a.log)


def first(f: Map, x: Tensor, g: Scaled) -> Scaled:
    """Return f(x + G) - f(x), by an integral over the first derivative."""
    total = sum(share * slope(f, x + t * g.value(), g.unit) for t, share in nodes(g))
    assert isinstance(total, Tensor)
    return g.map(total)


def second(f: Map, c: Tensor, r: Scaled, a: Scaled) -> Scaled:
    """Return f(c + r + a) - f(c + r) if f(c + a) = f(c), by an integral over the second derivative."""
    total = sum(
        share * part * slope(f, c + t * a.value() + u * r.value(), r.unit, a.unit)
        for t, share in nodes(a)
        for u, part in nodes(r)
    )
    assert isinstance(total, Tensor)
    return normal(total, r.log + a.log)


def nodes(g: Scaled) -> list[tuple[float, float]]:
    """Return nodes in [0, 1] and their weights, for an integral along G."""
    nodes_, shares = np.polynomial.legendre.leggauss(NODES if float(g.log.max()) > INVISIBLE else FEW)
    return [(float(node + 1) / 2, float(share) / 2) for node, share in zip(nodes_, shares)]


def agrees(f: Map, s: Scores, found: Weights, constant: bool) -> Tensor:
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
    good = largest(direct - found.rows.value()) <= lost + CLOSE * largest(direct)
    if found.sums is not None:
        total = direct.sum(-1, keepdim=True)
        good = good & (largest(total - found.sums.value()) <= p.shape[-1] * lost + CLOSE * largest(direct))
    known = good | (largest(direct) > CLEAR * largest(p)) | ~p.flatten(2).isfinite().all(2)
    if not bool(known.all()):
        raise Unknown("the slope of the normaliser changes too fast between similar rows: no centred form")
    return good


def largest(x: Tensor) -> Tensor:
    """Return the largest absolute value of the entries (K, B)."""
    return x.abs().flatten(2).amax(2)
