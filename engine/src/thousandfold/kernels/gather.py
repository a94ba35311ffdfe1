"""GATHER and SCATTER: read and write numbers at indices. Indices are integers, stored as numbers in the arena.

GATHER: x, index, out (buffer, offset each), places, features, step | index offsets (places) | x offsets | out offsets
| x offsets (features) | out offsets
SCATTER: out, index, values, zeros, adds, places, features, step | index offsets (places) | out offsets | value offsets
| out offsets (features) | value offsets
"""

from thousandfold.kernels.inner import compiled
from thousandfold.kernels.memory import ahead, three_operands


@compiled
def gather(scratch, table, bases, p):  # type: ignore[no-untyped-def]
    """Set out[to + d] = x[from + index * step + d] for all places and features d."""
    x, index, out = three_operands(scratch, bases, p)
    places, features, step = p[6], p[7], p[8]
    at = ahead(p, 9)
    from_ = ahead(at, places)
    to = ahead(from_, places)
    feature = ahead(to, places)
    out_feature = ahead(feature, features)
    for d in range(features):
        z, y = ahead(x, feature[d]), ahead(out, out_feature[d])
        for j in range(places):
            y[to[j]] = z[from_[j] + step * int(index[at[j]])]


@compiled
def scatter(scratch, table, bases, p):  # type: ignore[no-untyped-def]
    """Set out to zeros, and write or add the values at their indices."""
    out, index, values = three_operands(scratch, bases, p)
    zeros, adds, places, features, step = p[6], p[7], p[8], p[9], p[10]
    at = ahead(p, 11)
    to = ahead(at, places)
    from_ = ahead(to, places)
    feature = ahead(from_, places)
    value_feature = ahead(feature, features)
    for i in range(zeros):
        out[i] = 0.0
    for j in range(places):
        y, z = ahead(out, to[j] + step * int(index[at[j]])), ahead(values, from_[j])
        if adds:
            for d in range(features):
                y[feature[d]] += z[value_feature[d]]
        else:
            for d in range(features):
                y[feature[d]] = z[value_feature[d]]
