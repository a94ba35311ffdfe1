"""BMM: a product of matrices for each sequence of a batch, with sequences side by side in vectors.

    A, B, C (buffer, offset each), A has lanes, B has lanes, outer, M, N, K, lanes | A offsets (outer) | B offsets | C offsets
    | A offsets (M) | A offsets (K) | B offsets (N) | B offsets (K) | C offsets (M) | C offsets (N)
    C[m, n] = sum over k of A[m, k] B[n, k], where each operand has one number for all sequences or one for each

Sums of two terms add rounded products, so that x y - u v is exactly -(u v - x y).
"""

from typing import Any

from thousandfold.codes import NEAR, ROOM, TABLE
from thousandfold.kernels.gather import place
from thousandfold.kernels.inner import compiled
from thousandfold.kernels.linear import room_in
from thousandfold.kernels.memory import ahead, lanes_of, load, load_some, register_lanes, store
from thousandfold.kernels.tiles import SQUARE, tile

ROWS, COLUMNS = SQUARE
OFTEN = 16  # number of rows and columns from which it is faster to pack the operands


def product(vectors: bool, masked: bool, rounded: bool) -> Any:
    """Return a function that computes all rows and columns for one vector of sequences, of which `left` lanes are used."""
    square, row, column, single = (
        tile(i, j, vectors, True, masked, rounded) for i, j in (SQUARE, (1, COLUMNS), (ROWS, 1), (1, 1))
    )

    @compiled
    def product_of(A, ma, ka, B, nb, kb, C, mc, nc, rows, columns, count, left):  # type: ignore[no-untyped-def]
        # The area of the squares. The last square overlaps the previous one and computes a part again, which is faster than smaller tiles.
        tall, wide = rows if rows >= ROWS else 0, columns if columns >= COLUMNS else 0
        for after in range(0, wide, COLUMNS):
            j = min(after, columns - COLUMNS)
            n, c = ahead(nb, j), ahead(nc, j)
            for below in range(0, tall, ROWS):
                i = min(below, rows - ROWS)
                square(A, ahead(ma, i), ka, B, n, kb, C, ahead(mc, i), c, count, left, A, ma, 0)
            for i in range(tall, rows):
                row(A, ahead(ma, i), ka, B, n, kb, C, ahead(mc, i), c, count, left, A, ma, 0)
        for j in range(wide, columns):
            n, c = ahead(nb, j), ahead(nc, j)
            for below in range(0, tall, ROWS):
                i = min(below, rows - ROWS)
                column(A, ahead(ma, i), ka, B, n, kb, C, ahead(mc, i), c, count, left, A, ma, 0)
            for i in range(tall, rows):
                single(A, ahead(ma, i), ka, B, n, kb, C, ahead(mc, i), c, count, left, A, ma, 0)

    return product_of


NUMBERS, NUMBERS_PART, NUMBERS_TWO = (
    product(False, False, False),
    product(False, True, False),
    product(False, True, True),
)
VECTORS, VECTORS_PART, VECTORS_TWO = product(True, False, False), product(True, True, False), product(True, True, True)


@compiled
def lanes_product(both, A, ma, ka, B, nb, kb, C, mc, nc, rows, columns, count, left):  # type: ignore[no-untyped-def]
    full = left >= register_lanes(A)
    if both:
        if count == 2:
            VECTORS_TWO(A, ma, ka, B, nb, kb, C, mc, nc, rows, columns, count, left)
        elif full:
            VECTORS(A, ma, ka, B, nb, kb, C, mc, nc, rows, columns, count, left)
        else:
            VECTORS_PART(A, ma, ka, B, nb, kb, C, mc, nc, rows, columns, count, left)
    elif count == 2:
        NUMBERS_TWO(A, ma, ka, B, nb, kb, C, mc, nc, rows, columns, count, left)
    elif full:
        NUMBERS(A, ma, ka, B, nb, kb, C, mc, nc, rows, columns, count, left)
    else:
        NUMBERS_PART(A, ma, ka, B, nb, kb, C, mc, nc, rows, columns, count, left)


@compiled
def pack(x, rows, terms, count, many, left, to):  # type: ignore[no-untyped-def]
    """Copy vectors of x (count, many), of which `left` lanes are used, one after another."""
    each, at = register_lanes(x), 0
    for i in range(count):
        row = ahead(x, rows[i])
        for k in range(many):  # the next vector overwrites the part that is wider than a register
            store(to, at, load(row, terms[k]) if left >= lanes_of(x) else load_some(row, terms[k], left))
            at += each


@compiled
def any_product(both, A, ma, ka, B, nb, kb, C, mc, nc, rows, columns, count, lanes, room, table):  # type: ignore[no-untyped-def]
    """Compute a product in which B has lanes, and A has lanes if `both`. Vectors that many sums read are packed first, since unaligned
    vectors take two cache lines."""
    each, most = register_lanes(A), max(rows, columns)
    packs = both and min(rows, columns) >= OFTEN and most + count <= TABLE - NEAR and 2 * most * count * each < ROOM
    near, apart = ahead(table, NEAR), ahead(table, NEAR + count)
    second = ahead(room, rows * count * each)
    if packs:
        for k in range(count):
            near[k] = k * each
        for i in range(most):
            apart[i] = i * count * each
    for beyond in range(0, lanes, each):
        lane = max(0, min(beyond, lanes - each))  # the last vector overlaps the previous one, as in `pointwise.py`
        left, b, c = lanes - lane, ahead(B, lane), ahead(C, lane)
        a = ahead(A, lane) if both else A
        if packs:
            pack(a, ma, ka, rows, count, left, room)
            pack(b, nb, kb, columns, count, left, second)
            lanes_product(both, room, apart, near, second, apart, near, c, mc, nc, rows, columns, count, left)
        else:
            lanes_product(both, a, ma, ka, b, nb, kb, c, mc, nc, rows, columns, count, left)


@compiled
def multiply_batch(scratch, table, bases, p):  # type: ignore[no-untyped-def]
    A, B, C = place(scratch, bases, p, 0), place(scratch, bases, p, 2), place(scratch, bases, p, 4)
    lanes_a, lanes_b, outer, rows, columns, count, lanes = p[6], p[7], p[8], p[9], p[10], p[11], p[12]
    oa = ahead(p, 13)
    ob = ahead(oa, outer)
    oc = ahead(ob, outer)
    ma = ahead(oc, outer)
    ka = ahead(ma, rows)
    nb = ahead(ka, count)
    kb = ahead(nb, columns)
    mc = ahead(kb, count)
    nc = ahead(mc, rows)
    room = room_in(scratch)
    for o in range(outer):
        a, b, c = ahead(A, oa[o]), ahead(B, ob[o]), ahead(C, oc[o])
        if lanes_b:
            any_product(lanes_a != 0, a, ma, ka, b, nb, kb, c, mc, nc, rows, columns, count, lanes, room, table)
        else:
            any_product(False, b, nb, kb, a, ma, ka, c, nc, mc, columns, rows, count, lanes, room, table)
