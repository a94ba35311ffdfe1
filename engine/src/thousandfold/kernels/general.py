"""GEN: all other products of matrices.

    A, B, C (buffer, offset each), outer, M, N, K | A offsets (outer) | B offsets | C offsets | A offsets (M) | A offsets (K)
    | B offsets (N) | B offsets (K) | C offsets (M) | C offsets (N)
    C[m, n] = sum over k of A[m, k] B[n, k]

The longer side is first packed into vectors.
"""

from thousandfold.codes import APART, NEAR, REGISTERS, TABLE, TERMS_A, TERMS_B
from thousandfold.kernels.gather import place
from thousandfold.kernels.inner import compiled
from thousandfold.kernels.linear import panels, room_in
from thousandfold.kernels.memory import ahead, real, register_lanes

SMALL = 16  # number of sums up to which no vectors are used
ROWS = TERMS_B - TERMS_A  # rows at once of a product that is computed in `room` and then written to its places


@compiled
def general(scratch, table, bases, p):  # type: ignore[no-untyped-def]
    A, B, C = place(scratch, bases, p, 0), place(scratch, bases, p, 2), place(scratch, bases, p, 4)
    outer, rows, columns, count = p[6], p[7], p[8], p[9]
    oa = ahead(p, 10)
    ob = ahead(oa, outer)
    oc = ahead(ob, outer)
    ma = ahead(oc, outer)
    ka = ahead(ma, rows)
    nb = ahead(ka, count)
    kb = ahead(nb, columns)
    mc = ahead(kb, count)
    nc = ahead(mc, rows)
    room, free = room_in(scratch), scratch.size - REGISTERS * APART
    for o in range(outer):
        a, b, c = ahead(A, oa[o]), ahead(B, ob[o]), ahead(C, oc[o])
        if rows * columns < SMALL or count > TABLE - NEAR or free < (count + ROWS) * (max(rows, columns) + 16):
            one_by_one(a, ma, ka, b, nb, kb, c, mc, nc, rows, columns, count)
        elif columns >= rows:
            in_vectors(a, ma, ka, b, nb, kb, c, mc, nc, rows, columns, count, room, table)
        else:
            in_vectors(b, nb, kb, a, ma, ka, c, nc, mc, columns, rows, count, room, table)


@compiled
def one_by_one(A, ma, ka, B, nb, kb, C, mc, nc, rows, columns, count):  # type: ignore[no-untyped-def]
    for i in range(rows):
        a, c = ahead(A, ma[i]), ahead(C, mc[i])
        for j in range(columns):
            b, total = ahead(B, nb[j]), real(C, 0.0)
            for k in range(count):
                total += a[ka[k]] * b[kb[k]]
            c[nc[j]] = total


@compiled
def in_vectors(A, ma, ka, B, nb, kb, C, mc, nc, rows, columns, count, room, table):  # type: ignore[no-untyped-def]
    lanes = register_lanes(A)
    width = -(-columns // lanes) * lanes
    near, place_of = ahead(table, NEAR), ahead(table, TERMS_A)
    for k in range(count):
        near[k] = k * width
        b, to = ahead(B, kb[k]), ahead(room, k * width)
        for j in range(columns):
            to[j] = b[nb[j]]
    found = ahead(room, count * width)
    for first in range(0, rows, ROWS):
        some = min(ROWS, rows - first)
        for i in range(some):
            place_of[i] = i * width
        panels(A, ahead(ma, first), ka, room, near, found, place_of, some, count, columns, A, ma, 0, False, room, table)
        for i in range(some):
            c, from_ = ahead(C, mc[first + i]), ahead(found, i * width)
            for j in range(columns):
                c[nc[j]] = from_[j]
