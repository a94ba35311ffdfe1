"""RED: sum, maximum, minimum and index of the maximum over some dimensions.

out[o + r] is taken over x[i + t + r] for all terms t, r < run. If `together` is not 0, it is taken over x[i + t + c], c < together.
"""

from thousandfold.codes import ARGMAX, MAXIMUM, RED, SUM
from thousandfold.kernels.fields import reader
from thousandfold.kernels.functions import larger, smaller
from thousandfold.kernels.inner import compiled, joint
from thousandfold.kernels.lanes import select, sum_of_lanes
from thousandfold.kernels.memory import (
    ahead,
    lanes_of,
    load,
    load_some,
    real,
    spread,
    store,
    store_some,
)

read = reader(RED)


@compiled
def reduce(scratch, table, bases, p):  # type: ignore[no-untyped-def]
    """Run RED."""
    f = read(scratch, bases, p)
    for o in range(f.rows):
        x, out = ahead(f.x, f.io[o]), ahead(f.out, f.oo[o])
        if f.together and f.kind == SUM:
            out[0] = sum_of_runs(x, f.ro, f.terms, f.together)
        elif f.together:
            out[0] = extreme_of_runs(f.kind, x, f.ro, f.terms, f.together)
        elif f.kind == SUM:
            sums(x, out, f.ro, f.terms, f.run)
        elif f.kind == ARGMAX:
            places(x, out, f.ro, f.terms, f.run)
        else:
            extremes(f.kind, x, out, f.ro, f.terms, f.run)


@joint
def add_run(first, second, x, n):  # type: ignore[no-untyped-def]
    """Add n neighbours of x to two vectors in turn."""
    lanes, i = lanes_of(x), 0
    while i + 2 * lanes <= n:
        first, second = first + load(x, i), second + load(x, i + lanes)
        i += 2 * lanes
    while i < n:
        first = first + load_some(x, i, n - i)
        i += lanes
    return first, second


@compiled
def sum_of_runs(x, term, terms, together):  # type: ignore[no-untyped-def]
    first = second = spread(x, real(x, 0.0))
    for k in range(terms):
        first, second = add_run(first, second, ahead(x, term[k]), together)
    return sum_of_lanes(first + second)


@compiled
def extreme_of_runs(kind, x, term, terms, together):  # type: ignore[no-untyped-def]
    result = x[term[0]]
    for k in range(terms):
        z = ahead(x, term[k])
        for i in range(together):
            value = z[i]
            if (value > result if kind == MAXIMUM else value < result) or value != value:
                result = value
    return result


@compiled
def sums(x, out, term, terms, run):  # type: ignore[no-untyped-def]
    """Write the sums over all terms of `run` neighbours, four vectors at a time."""
    lanes, r = lanes_of(x), 0
    zero = spread(x, real(x, 0.0))
    while r + 4 * lanes <= run:
        a = b = c = d = zero
        for k in range(terms):
            z = ahead(x, term[k] + r)
            a, b = a + load(z, 0), b + load(z, lanes)
            c, d = c + load(z, 2 * lanes), d + load(z, 3 * lanes)
        store(out, r, a)
        store(out, r + lanes, b)
        store(out, r + 2 * lanes, c)
        store(out, r + 3 * lanes, d)
        r += 4 * lanes
    while r < run:
        remaining = run - r
        a = zero
        for k in range(terms):
            a = a + load_some(x, term[k] + r, remaining)
        store_some(out, r, a, remaining)
        r += lanes


@compiled
def extremes(kind, x, out, term, terms, run):  # type: ignore[no-untyped-def]
    """Write the maximum or minimum over all terms of `run` neighbours."""
    lanes, r = lanes_of(x), 0
    while r + 2 * lanes <= run:
        z = ahead(x, term[0] + r)
        a, b = load(z, 0), load(z, lanes)
        for k in range(1, terms):
            z = ahead(x, term[k] + r)
            a, b = extreme(kind, load(z, 0), a), extreme(kind, load(z, lanes), b)
        store(out, r, a)
        store(out, r + lanes, b)
        r += 2 * lanes
    while r < run:
        remaining = run - r
        a = load_some(x, term[0] + r, remaining)
        for k in range(1, terms):
            a = extreme(kind, load_some(x, term[k] + r, remaining), a)
        store_some(out, r, a, remaining)
        r += lanes


@joint
def extreme(kind, x, y):  # type: ignore[no-untyped-def]
    return larger(x, y) if kind == MAXIMUM else smaller(x, y)


@compiled
def places(x, out, term, terms, run):  # type: ignore[no-untyped-def]
    """Write the index of the first maximum. NaN is larger than any number."""
    lanes = lanes_of(x)
    for r in range(0, run, lanes):
        remaining = run - r
        best = load_some(x, term[0] + r, remaining)
        index = spread(x, real(x, 0.0))
        for k in range(1, terms):
            value = load_some(x, term[k] + r, remaining)
            better = (value > best) | ((value != value) & (best == best))
            best = select(better, value, best)
            index = select(better, spread(x, real(x, k)), index)
        store_some(out, r, index, remaining)
