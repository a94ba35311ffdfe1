"""Products of matrices.

LIN and WGRAD: products of activations with weights, and of activations with gradients, summed over the batch.

LIN: C[n, r] = bias[n] + sum over k of W[k, n] X[k, r], r < run
WGRAD: C[m, n] = sum over all r of A[m, r] B[n, r]; n is contiguous

BMM: a product of matrices for each sequence of a batch, with sequences side by side in vectors.

    C[m, n] = sum over k of A[m, k] B[n, k], where each operand has one number for all sequences or one for each

Sums of two terms add rounded products, so that x y - u v is exactly -(u v - x y).

GEN: all other products of matrices.

    C[m, n] = sum over k of A[m, k] B[n, k]

The longer side is first packed into vectors.
"""

from typing import Any

from thousandfold.codes import APART, BMM, GEN, LIN, NEAR, REGISTERS, ROOM, TABLE, TERMS_A, TERMS_B, WGRAD
from thousandfold.kernels.fields import reader
from thousandfold.kernels.inner import compiled, joint
from thousandfold.kernels.memory import (
    ahead,
    copy,
    lanes_of,
    load,
    load_some,
    pointer_to,
    real,
    register_lanes,
    store,
)
from thousandfold.kernels.tiles import ADDED, BIAS, MOST_ROWS, MOST_VECTORS, SQUARE, part_block, tile, whole_block

# Terms of a partial sum over a batch. Partial sums round less than one long sum, and their operands stay in the cache.
TERMS = 256

read_linear, read_gradient, read_batch, read_general = map(reader, (LIN, WGRAD, BMM, GEN))


def all_rows(columns: int, masked: bool) -> Any:
    """Return a function that computes all rows of `columns` neighbouring vectors."""
    tall, four, single = (tile(rows, columns, False, False, masked) for rows in (MOST_ROWS, 4, 1))

    @compiled
    def rows_of(A, ma, ka, B, kb, C, mc, rows, count, used, first, mf, how):  # type: ignore[no-untyped-def]
        i = 0
        while i + MOST_ROWS <= rows:
            tall(A, ahead(ma, i), ka, B, kb, kb, C, ahead(mc, i), kb, count, used, first, ahead(mf, i), how)
            i += MOST_ROWS
        while i + 4 <= rows:
            four(A, ahead(ma, i), ka, B, kb, kb, C, ahead(mc, i), kb, count, used, first, ahead(mf, i), how)
            i += 4
        while i < rows:
            single(A, ahead(ma, i), ka, B, kb, kb, C, ahead(mc, i), kb, count, used, first, ahead(mf, i), how)
            i += 1

    return rows_of


def strip(columns: int) -> Any:
    """Return a function that computes all rows of at most `columns` neighbouring vectors, of which `used` numbers are used."""
    whole, part = all_rows(columns, False), all_rows(columns, True)
    fewer = strip(columns - 1) if columns > 1 else part

    @compiled
    def columns_of(A, ma, ka, B, kb, C, mc, rows, count, used, first, mf, how):  # type: ignore[no-untyped-def]
        lanes = register_lanes(A)
        if used <= (columns - 1) * lanes:
            fewer(A, ma, ka, B, kb, C, mc, rows, count, used, first, mf, how)
        elif used >= columns * lanes:
            whole(A, ma, ka, B, kb, C, mc, rows, count, used, first, mf, how)
        else:
            part(A, ma, ka, B, kb, C, mc, rows, count, used, first, mf, how)

    return columns_of


columns_of = strip(MOST_VECTORS)


@compiled
def panels(A, ma, ka, B, kb, C, mc, rows, count, run, first, mf, how, packs, room, table):  # type: ignore[no-untyped-def]
    """Compute C (rows, run) from A (rows, count) and B (count, run). With `packs`, rows of B are too far apart for the processor's
    prefetcher and are first copied to `room`."""
    wide = MOST_VECTORS * register_lanes(A)
    near = ahead(table, NEAR)
    if packs:
        for k in range(count):
            near[k] = k * wide
    lanes = register_lanes(A)
    for r in range(0, run, wide):
        used = run - r
        whole = -(-used // lanes) * lanes
        if used < wide and whole <= run and how != ADDED:
            # Compute whole vectors, of which the first overlaps the previous panel.
            r, used = run - whole, whole
        y = ahead(C, r)
        if packs:
            for k in range(count):
                if used >= wide:
                    copy(ahead(room, k * wide), ahead(B, kb[k] + r), wide)
                else:
                    copy(ahead(room, k * wide), ahead(B, kb[k] + r), used)
            columns_of(A, ma, ka, room, near, y, mc, rows, count, used, first, mf, how)
        else:
            columns_of(A, ma, ka, ahead(B, r), kb, y, mc, rows, count, used, first, mf, how)


@compiled
def linear(scratch, table, bases, p):  # type: ignore[no-untyped-def]
    """Run LIN."""
    f, room = read_linear(scratch, bases, p), room_in(scratch)
    far = f.terms > 1 and (f.kx[1] - f.kx[0]) * scratch.itemsize >= 1024
    packs = f.columns >= 32 and f.terms >= 48 and far and f.terms <= TABLE - NEAR
    how = BIAS if f.biased else 0
    for i in range(f.rows):
        x, w, c = ahead(f.x, f.rx[i]), ahead(f.w, f.rw[i]), ahead(f.out, f.rc[i])
        panels(w, f.nw, f.kw, x, f.kx, c, f.nc, f.columns, f.terms, f.run, f.bias, f.ob, how, packs, room, table)


@joint
def room_in(scratch):  # type: ignore[no-untyped-def]
    """Return the pointer to the memory behind the registers."""
    return pointer_to(scratch, scratch.ctypes.data, REGISTERS * APART)


@compiled
def transpose(x, rows, count, y, row, run):  # type: ignore[no-untyped-def]
    """Transpose x (count, run), whose rows are at the offsets `rows`, to y (run, row). `row` is a whole number of vectors, of which the
    last may end with arbitrary numbers."""
    lanes = register_lanes(x)
    for n in range(0, count, lanes):
        last = min(lanes, count - n) - 1
        if run < lanes:
            part_block(x, ahead(rows, n), last, ahead(y, n), row, run)
        else:
            for r in range(0, run, lanes):
                j = min(r, run - lanes)  # the last square ends at the end of the run
                whole_block(ahead(x, j), ahead(rows, n), last, ahead(y, j * row + n), row, lanes)


@compiled
def weights_gradient(scratch, table, bases, p):  # type: ignore[no-untyped-def]
    """Run WGRAD: transpose B to `across`, TERMS terms at a time, and add the partial sums."""
    f = read_gradient(scratch, bases, p)
    A, ma, rows, columns, run = f.a, f.ma, f.rows, f.columns, f.run
    lanes = register_lanes(A)
    width = -(-columns // lanes) * lanes
    across, ka, kb = room_in(scratch), ahead(table, TERMS_A), ahead(table, TERMS_B)
    terms, how = 0, 0
    for i in range(f.terms):
        r = 0
        while r < run:
            part = min(run - r, TERMS - terms)
            transpose(ahead(f.b, f.kb[i] + r), f.nb, columns, ahead(across, terms * width), width, part)
            for j in range(part):
                ka[terms + j], kb[terms + j] = f.ka[i] + r + j, (terms + j) * width
            terms, r = terms + part, r + part
            if terms == TERMS or (i == f.terms - 1 and r == run):
                panels(A, ma, ka, across, kb, f.out, f.mc, rows, terms, columns, A, ma, how, False, across, table)
                terms, how = 0, ADDED


ROWS, COLUMNS = SQUARE
OFTEN = 16  # number of rows and columns from which it is faster to pack the operands


def product(vectors: bool, masked: bool, rounded: bool) -> Any:
    """Return a function that computes all rows and columns for one vector of sequences, of which `used` lanes are used."""
    square, row, column, single = (
        tile(i, j, vectors, True, masked, rounded) for i, j in (SQUARE, (1, COLUMNS), (ROWS, 1), (1, 1))
    )

    @compiled
    def product_of(A, ma, ka, B, nb, kb, C, mc, nc, rows, columns, count, used):  # type: ignore[no-untyped-def]
        # The area of the squares. The last square overlaps the previous one and computes a part again, which is faster than smaller tiles.
        tall, wide = rows if rows >= ROWS else 0, columns if columns >= COLUMNS else 0
        for after in range(0, wide, COLUMNS):
            j = min(after, columns - COLUMNS)
            n, c = ahead(nb, j), ahead(nc, j)
            for below in range(0, tall, ROWS):
                i = min(below, rows - ROWS)
                square(A, ahead(ma, i), ka, B, n, kb, C, ahead(mc, i), c, count, used, A, ma, 0)
            for i in range(tall, rows):
                row(A, ahead(ma, i), ka, B, n, kb, C, ahead(mc, i), c, count, used, A, ma, 0)
        for j in range(wide, columns):
            n, c = ahead(nb, j), ahead(nc, j)
            for below in range(0, tall, ROWS):
                i = min(below, rows - ROWS)
                column(A, ahead(ma, i), ka, B, n, kb, C, ahead(mc, i), c, count, used, A, ma, 0)
            for i in range(tall, rows):
                single(A, ahead(ma, i), ka, B, n, kb, C, ahead(mc, i), c, count, used, A, ma, 0)

    return product_of


def lanes_product(vectors: bool) -> Any:
    """Return a function that computes a product for one vector of sequences, of which `used` lanes are used."""
    whole, part, two = (
        product(vectors, masked, rounded) for masked, rounded in ((False, False), (True, False), (True, True))
    )

    @compiled
    def product_of(A, ma, ka, B, nb, kb, C, mc, nc, rows, columns, count, used):  # type: ignore[no-untyped-def]
        if count == 2:
            two(A, ma, ka, B, nb, kb, C, mc, nc, rows, columns, count, used)
        elif used >= register_lanes(A):
            whole(A, ma, ka, B, nb, kb, C, mc, nc, rows, columns, count, used)
        else:
            part(A, ma, ka, B, nb, kb, C, mc, nc, rows, columns, count, used)

    return product_of


of_vectors, of_numbers = lanes_product(True), lanes_product(False)


@compiled
def pack(x, rows, terms, count, many, used, to):  # type: ignore[no-untyped-def]
    """Copy vectors of x (count, many), of which `used` lanes are used, one after another."""
    width, at = register_lanes(x), 0
    for i in range(count):
        row = ahead(x, rows[i])
        for k in range(many):  # the next vector overwrites the part that is wider than a register
            store(to, at, load(row, terms[k]) if used >= lanes_of(x) else load_some(row, terms[k], used))
            at += width


@compiled
def any_product(both, A, ma, ka, B, nb, kb, C, mc, nc, rows, columns, count, lanes, room, table):  # type: ignore[no-untyped-def]
    """Compute a product in which B has lanes, and A has lanes if `both`. Vectors that many sums read are packed first, since unaligned
    vectors take two cache lines."""
    width, most = register_lanes(A), max(rows, columns)
    packs = both and min(rows, columns) >= OFTEN and most + count <= TABLE - NEAR and 2 * most * count * width < ROOM
    near, apart = ahead(table, NEAR), ahead(table, NEAR + count)
    second = ahead(room, rows * count * width)
    if packs:
        for k in range(count):
            near[k] = k * width
        for i in range(most):
            apart[i] = i * count * width
    # Where few columns read A, all lanes of some rows come first, while these rows are in the L1 cache.
    tall = ROWS if both and columns < COLUMNS else rows
    for first in range(0, rows, tall):
        m, to, part = ahead(ma, first), ahead(mc, first), min(tall, rows - first)
        for beyond in range(0, lanes, width):
            lane = max(0, min(beyond, lanes - width))  # the last vector overlaps the previous one, as in `pointwise.py`
            used, a, b, c = lanes - lane, ahead(A, lane if both else 0), ahead(B, lane), ahead(C, lane)
            if packs:
                pack(a, m, ka, part, count, used, room)
                pack(b, nb, kb, columns, count, used, second)
                of_vectors(room, apart, near, second, apart, near, c, to, nc, part, columns, count, used)
            elif both:
                of_vectors(a, m, ka, b, nb, kb, c, to, nc, part, columns, count, used)
            else:
                of_numbers(a, m, ka, b, nb, kb, c, to, nc, part, columns, count, used)


@compiled
def multiply_batch(scratch, table, bases, p):  # type: ignore[no-untyped-def]
    """Run BMM. If only A has lanes, the sides change places."""
    f, room = read_batch(scratch, bases, p), room_in(scratch)
    ma, ka, nb, kb, mc, nc, rows, columns, terms = f.ma, f.ka, f.nb, f.kb, f.mc, f.nc, f.rows, f.columns, f.terms
    for o in range(f.outer):
        a, b, c = ahead(f.a, f.oa[o]), ahead(f.b, f.ob[o]), ahead(f.out, f.oc[o])
        if f.lb:
            any_product(f.la != 0, a, ma, ka, b, nb, kb, c, mc, nc, rows, columns, terms, f.lanes, room, table)
        else:
            any_product(False, b, nb, kb, a, ma, ka, c, nc, mc, columns, rows, terms, f.lanes, room, table)


SMALL = 16  # number of sums up to which no vectors are used
ROWS_AT_ONCE = TERMS_B - TERMS_A  # rows at once of a product that is computed in `room` and then written to its places


@compiled
def general(scratch, table, bases, p):  # type: ignore[no-untyped-def]
    """Run GEN. The longer side is read in vectors."""
    f, room, free = read_general(scratch, bases, p), room_in(scratch), scratch.size - REGISTERS * APART
    ma, ka, nb, kb, mc, nc, rows, columns, count = f.ma, f.ka, f.nb, f.kb, f.mc, f.nc, f.rows, f.columns, f.terms
    for o in range(f.outer):
        a, b, c = ahead(f.a, f.oa[o]), ahead(f.b, f.ob[o]), ahead(f.out, f.oc[o])
        if rows * columns < SMALL or count > TABLE - NEAR or free < (count + ROWS_AT_ONCE) * (max(rows, columns) + 16):
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
    """Compute C (rows, columns) in `room`, with B packed to vectors, and write it to its places."""
    lanes = register_lanes(A)
    width = -(-columns // lanes) * lanes
    near, place_of = ahead(table, NEAR), ahead(table, TERMS_A)
    for k in range(count):
        near[k] = k * width
        b, to = ahead(B, kb[k]), ahead(room, k * width)
        for j in range(columns):
            to[j] = b[nb[j]]
    result = ahead(room, count * width)
    for first in range(0, rows, ROWS_AT_ONCE):
        part = min(ROWS_AT_ONCE, rows - first)
        for i in range(part):
            place_of[i] = i * width
        panels(
            A, ahead(ma, first), ka, room, near, result, place_of, part, count, columns, A, ma, 0, False, room, table
        )
        for i in range(part):
            c, from_ = ahead(C, mc[first + i]), ahead(result, i * width)
            for j in range(columns):
                c[nc[j]] = from_[j]
