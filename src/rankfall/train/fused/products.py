"""Products of matrices of any size, cut into register tiles (`tile.py`). Activations are (features, R), R numbers in whole vectors."""

import numpy as np
from numba import literally

from rankfall.train.fused.compiled import compiled, elementwise
from rankfall.train.fused.tile import (
    COLUMNS,
    LANES,
    LANEWISE,
    LANEWISE_HALF,
    LANEWISE_ROUNDED,
    OVER_LANES,
    ROWS,
    SOME_ADD,
    WEIGHTS,
    WEIGHTS_ADD,
    WEIGHTS_BIAS,
    prefetch,
    tile,
    transpose_block,
)

STAYS = 2**16  # numbers that stay in a core's own cache while others pass through it
SUMMED = (
    256  # terms of one sum over R: a sum of sums rounds less than one long sum, and what it is of stays in the cache
)


@compiled
def start(array):  # type: ignore[no-untyped-def]
    """The address of an array's first element."""
    return np.int64(array.ctypes.data)


@compiled
def multiply(kind, A, ar, ak, B, bk, bn, C, cr, cn, rows, columns, count, extra):  # type: ignore[no-untyped-def]
    """C (rows, columns) from A (rows, count) and B (count, columns). `extra`: where a bias for each row begins; LANEWISE, how many
    numbers of a vector of C are wanted; SOME_ADD, how many of a row of C."""
    literally(kind)
    each = 4 if kind == WEIGHTS_BIAS else 0
    fewer = LANES if kind == SOME_ADD else 0
    full_rows, full_columns = rows - rows % ROWS, columns - columns % COLUMNS
    # Where B is larger than the cache, its next columns and those of C are asked for a few rows before each tile.
    large, some = kind != OVER_LANES and count * columns * LANES > STAYS, count * ROWS // max(1, full_rows) + 1
    for n in range(0, full_columns, COLUMNS):
        b, c, e = B + 4 * n * bn, C + 4 * n * cn, extra - n * fewer
        for r in range(0, full_rows, ROWS):
            if large and n + COLUMNS < full_columns:
                soon(b + 4 * COLUMNS * bn, bk, bn, r // ROWS * some, min(count, (r // ROWS + 1) * some))
                soon(c + 4 * (COLUMNS * cn + r * cr), cr, cn, 0, ROWS)
            tile(kind, ROWS, COLUMNS, A + 4 * r * ar, ar, ak, b, bk, bn, c + 4 * r * cr, cr, cn, count, e + each * r)
        for r in range(full_rows, rows):
            tile(kind, 1, COLUMNS, A + 4 * r * ar, ar, ak, b, bk, bn, c + 4 * r * cr, cr, cn, count, e + each * r)
    for n in range(full_columns, columns):
        b, c, e = B + 4 * n * bn, C + 4 * n * cn, extra - n * fewer
        for r in range(0, full_rows, ROWS):
            tile(kind, ROWS, 1, A + 4 * r * ar, ar, ak, b, bk, bn, c + 4 * r * cr, cr, cn, count, e + each * r)
        for r in range(full_rows, rows):
            tile(kind, 1, 1, A + 4 * r * ar, ar, ak, b, bk, bn, c + 4 * r * cr, cr, cn, count, e + each * r)


@compiled
def soon(B, bk, bn, first, last):  # type: ignore[no-untyped-def]
    """Has columns of B brought to the cache, rows first .. last - 1: they lie too far apart for the processor to foresee."""
    for k in range(first, last):
        for n in range(COLUMNS):
            prefetch(B + 4 * (k * bk + n * bn))


@compiled
def lanewise(A, ar, ak, B, bk, bn, C, cr, cn, rows, columns, count, wanted):  # type: ignore[no-untyped-def]
    """Such a product for each of the next sequences, as many as a vector has lanes or as are `wanted`. Sums over two tokens are taken of
    rounded products: where one token is the other's negative, so are then their sums, exactly, as they are by autograd."""
    if count == 2:
        multiply(LANEWISE_ROUNDED, A, ar, ak, B, bk, bn, C, cr, cn, rows, columns, count, wanted)
    elif wanted > LANES // 2:
        multiply(LANEWISE, A, ar, ak, B, bk, bn, C, cr, cn, rows, columns, count, wanted)
    else:
        multiply(LANEWISE_HALF, A, ar, ak, B, bk, bn, C, cr, cn, rows, columns, count, wanted)


@compiled
def linear(w, at, x, y):  # type: ignore[no-untyped-def]
    """y (out, R) = W^T x + b from x (in, R); W (in, out) begins at w[at[0]], b at w[at[1]]."""
    size_in, size_out, row = x.shape[0], y.shape[0], x.shape[1]
    weight, bias = start(w) + 4 * at[0], start(w) + 4 * at[1]
    multiply(
        WEIGHTS_BIAS,
        weight,
        1,
        size_out,
        start(x),
        row,
        LANES,
        start(y),
        row,
        LANES,
        size_out,
        row // LANES,
        size_in,
        bias,
    )


@compiled
def linear_inputs(w, at, dy, dx):  # type: ignore[no-untyped-def]
    """dx (in, R) = W dy"""
    size_in, size_out, row = dx.shape[0], dy.shape[0], dy.shape[1]
    weight = start(w) + 4 * at[0]
    multiply(
        WEIGHTS, weight, size_out, 1, start(dy), row, LANES, start(dx), row, LANES, size_in, row // LANES, size_out, 0
    )


@compiled
def linear_inputs_add(w, at, dy, dx):  # type: ignore[no-untyped-def]
    """dx (in, R) += W dy"""
    size_in, size_out, row = dx.shape[0], dy.shape[0], dy.shape[1]
    weight = start(w) + 4 * at[0]
    multiply(
        WEIGHTS_ADD,
        weight,
        size_out,
        1,
        start(dy),
        row,
        LANES,
        start(dx),
        row,
        LANES,
        size_in,
        row // LANES,
        size_out,
        0,
    )


@compiled
def linear_weights(x, dy, g, at, pairs, transposed):  # type: ignore[no-untyped-def]
    """dW (in, out) += x dy^T and db += dy, summed over R; they begin at g[at[0]] and g[at[1]]. `pairs`: as of `sum_rows`; `transposed` is
    room for dy^T, whose rows are whole vectors."""
    size_in, size_out, row = x.shape[0], dy.shape[0], x.shape[1]
    width, place = -(-size_out // LANES) * LANES, start(g) + 4 * at[0]
    transpose(dy, transposed, width)
    for r in range(0, row, SUMMED):
        a, b, count = start(x) + 4 * r, start(transposed) + 4 * r * width, min(SUMMED, row - r)
        multiply(SOME_ADD, a, row, 1, b, width, LANES, place, size_out, LANES, size_in, width // LANES, count, size_out)
    sum_rows(dy, g, at[1], pairs)


@compiled
def transpose(x, y, width):  # type: ignore[no-untyped-def]
    """y = x^T of x (N, R), as rows of `width` numbers, of which the first N are filled in."""
    count, row = x.shape
    whole = count >= LANES and row >= LANES
    for n in range(0, count if whole else 0, LANES):
        i = min(n, count - LANES)  # the last block begins where it ends with the last row
        for r in range(0, row, LANES):
            j = min(r, row - LANES)
            transpose_block(start(x) + 4 * (i * row + j), row, start(y) + 4 * (j * width + i), width)
    for n in range(0 if whole else count):
        for r in range(row):
            y[r * width + n] = x[n, r]


@compiled
def sum_rows(dy, into, first, pairs):  # type: ignore[no-untyped-def]
    """into[first + o] += sum over R of dy[o]. `pairs`: how many sequences of two tokens there are, whose numbers are added first, so that
    those cancel exactly that are each other's negatives; 0 where sequences are longer."""
    both = np.empty(pairs, np.float32)
    for o in range(dy.shape[0]):
        into[first + o] += sum_row(dy[o], pairs, both)


@compiled
def sum_row(row, pairs, both):  # type: ignore[no-untyped-def]
    """The sum of a row (R,); `both` (pairs,) is written."""
    if not pairs:
        return sum_of(row)
    add_pairs(row, pairs, both)
    return sum_of(both)


@compiled
def add_pairs(row, pairs, both):  # type: ignore[no-untyped-def]
    for r in range(pairs):
        both[r] = row[r] + row[pairs + r]


@elementwise
def sum_of(row):  # type: ignore[no-untyped-def]
    total = np.float32(0)
    for r in range(row.shape[0]):
        total += row[r]
    return total
