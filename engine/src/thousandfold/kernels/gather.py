"""GATHER and SCATTER: read and write numbers at indices. Indices are integers, stored as numbers in the arena."""

from thousandfold.codes import GATHER, SCATTER
from thousandfold.kernels.fields import reader
from thousandfold.kernels.inner import compiled
from thousandfold.kernels.memory import ahead

read_gather, read_scatter = reader(GATHER), reader(SCATTER)


@compiled
def gather(scratch, table, bases, p):  # type: ignore[no-untyped-def]
    """Set out[to + d] = x[from + index * step + d] for all places and features d."""
    f = read_gather(scratch, bases, p)
    for d in range(f.features):
        x, out = ahead(f.x, f.xd[d]), ahead(f.out, f.od[d])
        for j in range(f.places):
            out[f.oo[j]] = x[f.xo[j] + f.stride * int(f.index[f.io[j]])]


@compiled
def scatter(scratch, table, bases, p):  # type: ignore[no-untyped-def]
    """Set out to zeros, and write or add the values at their indices."""
    f = read_scatter(scratch, bases, p)
    for i in range(f.zeros):
        f.out[i] = 0.0
    for j in range(f.places):
        out, v = ahead(f.out, f.xo[j] + f.stride * int(f.index[f.io[j]])), ahead(f.v, f.vo[j])
        for d in range(f.features):
            if f.adds:
                out[f.xd[d]] += v[f.vd[d]]
            else:
                out[f.xd[d]] = v[f.vd[d]]
