"""LIN and WGRAD: products of activations with weights, and of activations with gradients, summed over the batch.

LIN: X, W, C, bias (buffer, offset each), has bias, N, K, runs, run | X offsets (K) | W offsets (K) | W offsets (N) | C offsets (N)
| bias offsets (N) | X offsets (runs) | W offsets (runs) | C offsets (runs)
C[n, r] = bias[n] + sum over k of W[k, n] X[k, r], r < run
WGRAD: A, B, C, M, N, runs, run | A offsets (M) | B offsets (N) | C offsets (M) | A offsets (runs) | B offsets (runs)
C[m, n] = sum over all r of A[m, r] B[n, r]; n is contiguous
"""

from typing import Any

from thousandfold.codes import APART, NEAR, REGISTERS, TABLE, TERMS_A, TERMS_B
from thousandfold.kernels.gather import place
from thousandfold.kernels.inner import compiled, joint
from thousandfold.kernels.memory import ahead, copy, pointer_to, register_lanes
from thousandfold.kernels.tiles import ADDED, BIAS, MOST_ROWS, MOST_VECTORS, tile
from thousandfold.kernels.transpose import part_block, whole_block

# Terms of a partial sum over a batch. Partial sums round less than one long sum, and their operands stay in the cache.
TERMS = 256


def strip(columns: int, masked: bool) -> Any:
    """Return a function that computes all rows of `columns` neighbouring vectors."""
    tall, four, single = (tile(rows, columns, False, False, masked) for rows in (MOST_ROWS, 4, 1))

    @compiled
    def rows_of(A, ma, ka, B, kb, C, mc, rows, count, left, first, mf, how):  # type: ignore[no-untyped-def]
        i = 0
        while i + MOST_ROWS <= rows:
            tall(A, ahead(ma, i), ka, B, kb, kb, C, ahead(mc, i), kb, count, left, first, ahead(mf, i), how)
            i += MOST_ROWS
        while i + 4 <= rows:
            four(A, ahead(ma, i), ka, B, kb, kb, C, ahead(mc, i), kb, count, left, first, ahead(mf, i), how)
            i += 4
        while i < rows:
            single(A, ahead(ma, i), ka, B, kb, kb, C, ahead(mc, i), kb, count, left, first, ahead(mf, i), how)
            i += 1

    return rows_of


(ONE, TWO, THREE), (ONE_PART, TWO_PART, THREE_PART) = (
    [strip(columns, masked) for columns in (1, 2, 3)] for masked in (False, True)
)


@compiled
def columns_of(A, ma, ka, B, kb, C, mc, rows, count, left, first, mf, how):  # type: ignore[no-untyped-def]
    """Compute all rows of at most three vectors, of which `left` numbers are used."""
    lanes = register_lanes(A)
    if left > 2 * lanes:
        if left >= 3 * lanes:
            THREE(A, ma, ka, B, kb, C, mc, rows, count, left, first, mf, how)
        else:
            THREE_PART(A, ma, ka, B, kb, C, mc, rows, count, left, first, mf, how)
    elif left > lanes:
        if left == 2 * lanes:
            TWO(A, ma, ka, B, kb, C, mc, rows, count, left, first, mf, how)
        else:
            TWO_PART(A, ma, ka, B, kb, C, mc, rows, count, left, first, mf, how)
    elif left == lanes:
        ONE(A, ma, ka, B, kb, C, mc, rows, count, left, first, mf, how)
    else:
        ONE_PART(A, ma, ka, B, kb, C, mc, rows, count, left, first, mf, how)


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
        left = run - r
        whole = -(-left // lanes) * lanes
        if left < wide and whole <= run and how != ADDED:
            # Compute whole vectors, of which the first overlaps the previous panel.
            r, left = run - whole, whole
        y = ahead(C, r)
        if packs:
            for k in range(count):
                if left >= wide:
                    copy(ahead(room, k * wide), ahead(B, kb[k] + r), wide)
                else:
                    copy(ahead(room, k * wide), ahead(B, kb[k] + r), left)
            columns_of(A, ma, ka, room, near, y, mc, rows, count, left, first, mf, how)
        else:
            columns_of(A, ma, ka, ahead(B, r), kb, y, mc, rows, count, left, first, mf, how)


@compiled
def linear(scratch, table, bases, p):  # type: ignore[no-untyped-def]
    X, W = place(scratch, bases, p, 0), place(scratch, bases, p, 2)
    C, bias = place(scratch, bases, p, 4), place(scratch, bases, p, 6)
    biased, rows, count, runs, run = p[8], p[9], p[10], p[11], p[12]
    kx = ahead(p, 13)
    kw = ahead(kx, count)
    nw = ahead(kw, count)
    nc = ahead(nw, rows)
    nb = ahead(nc, rows)
    from_x = ahead(nb, rows)
    from_w = ahead(from_x, runs)
    from_c = ahead(from_w, runs)
    far = count > 1 and (kx[1] - kx[0]) * scratch.itemsize >= 1024
    packs = rows >= 32 and count >= 48 and far and count <= TABLE - NEAR
    how = BIAS if biased else 0
    room = room_in(scratch)
    for i in range(runs):
        x, w, c = ahead(X, from_x[i]), ahead(W, from_w[i]), ahead(C, from_c[i])
        panels(w, nw, kw, x, kx, c, nc, rows, count, run, bias, nb, how, packs, room, table)


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
    A, B, C = place(scratch, bases, p, 0), place(scratch, bases, p, 2), place(scratch, bases, p, 4)
    rows, columns, runs, run = p[6], p[7], p[8], p[9]
    ma = ahead(p, 10)
    nb = ahead(ma, rows)
    mc = ahead(nb, columns)
    from_a = ahead(mc, rows)
    from_b = ahead(from_a, runs)
    lanes = register_lanes(A)
    width = -(-columns // lanes) * lanes
    across, ka, kb = room_in(scratch), ahead(table, TERMS_A), ahead(table, TERMS_B)
    found, how = 0, 0
    for i in range(runs):
        r = 0
        while r < run:
            some = min(run - r, TERMS - found)
            transpose(ahead(B, from_b[i] + r), nb, columns, ahead(across, found * width), width, some)
            for j in range(some):
                ka[found + j], kb[found + j] = from_a[i] + r + j, (found + j) * width
            found, r = found + some, r + some
            if found == TERMS or (i == runs - 1 and r == run):
                panels(A, ma, ka, across, kb, C, mc, rows, found, columns, A, ma, how, False, across, table)
                found, how = 0, ADDED
