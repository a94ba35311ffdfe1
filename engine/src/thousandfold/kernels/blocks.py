"""PW: a group of pointwise operations on one block of numbers after another, and sums of their results.

    atoms, split, steps, inner, streams, operations, constants, sums | sizes | streams: buffer, offset, mode, register, strides
    | constants: register, bits | operations: number, d, a, b, c | sums: buffer, offset, count

The iteration space has `sizes`. A block has `steps` of dimension `split` and all later dimensions, with `inner` numbers per step.
A stream is used in place (IN_PLACE), copied to a register (COPIED_IN), written from a register (COPIED_OUT), or accumulates sums
(ADDED_UP).
"""

from thousandfold.codes import ADDED_UP, APART, AT, BLOCK, COPIED_IN, COPIED_OUT, FILLED, IN_PLACE, INSIDE
from thousandfold.kernels.inner import compiled, joint
from thousandfold.kernels.lanes import sum_of_lanes
from thousandfold.kernels.memory import (
    address_of,
    ahead,
    double_of,
    lanes_of,
    load,
    pointer_to,
    real,
    spread,
    store,
)
from thousandfold.kernels.pointwise import apply
from thousandfold.kernels.reduce import add_run

FILL, EMPTY, ADD = range(3)


@joint
def fill(d, x, step, n):  # type: ignore[no-untyped-def]
    """Copy n numbers of x at a distance of `step` to neighbours in d."""
    lanes = lanes_of(d)
    if step == 0 and n >= lanes:
        value = spread(d, x[0])
        for i in range(0, n - lanes, lanes):
            store(d, i, value)
        store(d, n - lanes, value)
    else:
        for i in range(n):
            d[i] = x[i * step]


@joint
def empty(d, x, step, n):  # type: ignore[no-untyped-def]
    """Copy n neighbours in d to x at a distance of `step`."""
    for i in range(n):
        x[i * step] = d[i]


@joint
def add(d, x, step, n):  # type: ignore[no-untyped-def]
    """Add d to x."""
    if step == 0:
        zero = spread(d, real(d, 0.0))
        first, second = add_run(zero, zero, d, n)
        x[0] += sum_of_lanes(first + second)
    else:
        for i in range(n):
            x[i * step] += d[i]


@joint
def side_by_side(kind, d, x, rows, run):  # type: ignore[no-untyped-def]
    """Copy `run` neighbours of x to each of the rows of d, or add all rows to them in order, two vectors at a time."""
    lanes = lanes_of(d)
    end, i = run - lanes, 0
    last = load(x, end)  # overlaps the previous vector, which changes x
    while i < run:
        at, next_ = min(i, end), min(i + lanes, end)
        first, second = load(x, at) if at < end else last, load(x, next_) if next_ < end else last
        row, other = ahead(d, at), ahead(d, next_)
        for _ in range(rows):
            if kind == FILL:
                store(row, 0, first)
                store(other, 0, second)
            else:
                first, second = first + load(row, 0), second + load(other, 0)
            row, other = ahead(row, run), ahead(other, run)
        if kind == ADD:
            store(x, at, first)
            store(x, next_, second)
        i += 2 * lanes


@compiled
def between(kind, d, x, sizes, strides, levels, steps, inner, at):  # type: ignore[no-untyped-def]
    """Copy or add a block (steps, sizes[1], ...) that is contiguous in d and strided in x."""
    last = levels - 1
    run, step = steps if last == 0 else sizes[last], strides[last]
    while last > 0 and step == 1 and strides[last - 1] == run:  # contiguous in x, too
        last -= 1
        run *= steps if last == 0 else sizes[last]
    rows, apart = 1, 0
    if last > 0:
        rows, apart = steps if last == 1 else sizes[last - 1], strides[last - 1]
    for i in range(last - 1):
        at[i] = 0
    vectors = kind != EMPTY and step == 1 and run >= lanes_of(d)
    for first in range(0, steps * inner, rows * run):
        block, z = ahead(d, first), x
        if vectors and apart == 0:
            side_by_side(kind, block, z, rows, run)
        else:
            for _ in range(rows):
                if vectors:
                    side_by_side(kind, block, z, 1, run)
                elif kind == FILL:
                    fill(block, z, step, run)
                elif kind == EMPTY:
                    empty(block, z, step, run)
                else:
                    add(block, z, step, run)
                block, z = ahead(block, run), ahead(z, apart)
        i = last - 2
        while i >= 0:
            x = ahead(x, strides[i])
            at[i] += 1
            if i == 0 or at[i] < sizes[i]:
                break
            x = ahead(x, -strides[i] * sizes[i])
            at[i] = 0
            i -= 1


@joint
def stream_at(like, bases, q, at, split, j):  # type: ignore[no-untyped-def]
    """Return the pointer to the block of a stream."""
    offset = q[1] + j * q[4 + split]
    for i in range(split):
        offset += at[i] * q[4 + i]
    return pointer_to(like, bases[q[0]], offset)


@compiled
def pointwise(scratch, table, bases, p):  # type: ignore[no-untyped-def]
    """Run PW: fill the streams of each block, run its operations, and empty its streams."""
    atoms, split, most, inner = p[0], p[1], p[2], p[3]
    streams, operations, constants, sums = p[4], p[5], p[6], p[7]
    sizes = ahead(p, 8)
    first = ahead(sizes, atoms)
    size = 4 + atoms
    constant = ahead(first, streams * size)
    operation = ahead(constant, 2 * constants)
    sum_ = ahead(operation, 5 * operations)
    at, inside = ahead(table, AT), ahead(table, INSIDE)
    begin(scratch, table, bases, constant, constants, sum_, sums)
    for k in range(streams):
        table[FILLED + ahead(first, k * size)[3]] = 0
    outer = 1
    for i in range(split):
        outer *= sizes[i]
        at[i] = 0
    behind, levels = ahead(sizes, split), atoms - split
    for _ in range(outer):
        for j in range(0, sizes[split], most):
            steps = min(most, sizes[split] - j)
            n = steps * inner
            for k in range(streams):
                q = ahead(first, k * size)
                if q[2] == ADDED_UP:
                    continue
                x = stream_at(scratch, bases, q, at, split, j)
                if q[2] == IN_PLACE:
                    table[q[3]] = address_of(x)
                elif q[2] == COPIED_IN:
                    strides = ahead(q, 4 + split)
                    if steps < most or table[FILLED + q[3]] != address_of(x):  # else the register has these numbers
                        between(FILL, register(scratch, table, q[3]), x, behind, strides, levels, steps, inner, inside)
                    table[FILLED + q[3]] = address_of(x) if steps == most else 0
            for k in range(operations):
                u = ahead(operation, 5 * k)
                d, a = register(scratch, table, u[1]), register(scratch, table, u[2])
                apply(u[0], d, a, register(scratch, table, u[3]), register(scratch, table, u[4]), n)
            for k in range(streams):
                q = ahead(first, k * size)
                if q[2] >= COPIED_OUT:
                    x, strides = stream_at(scratch, bases, q, at, split, j), ahead(q, 4 + split)
                    d, kind = register(scratch, table, q[3]), ADD if q[2] == ADDED_UP else EMPTY
                    between(kind, d, x, behind, strides, levels, steps, inner, inside)
        following(at, sizes, split)
    for k in range(streams):  # the next group finds the addresses of registers again
        q = ahead(first, k * size)
        if q[2] == IN_PLACE:
            table[q[3]] = address_of(pointer_to(scratch, scratch.ctypes.data, q[3] * APART))


@joint
def register(like, table, number):  # type: ignore[no-untyped-def]
    return pointer_to(like, table[number], 0)


@joint
def following(at, sizes, count):  # type: ignore[no-untyped-def]
    """Advance to the next position in the first `count` dimensions."""
    i = count - 1
    while i >= 0:
        at[i] += 1
        if at[i] < sizes[i]:
            break
        at[i] = 0
        i -= 1


@compiled
def begin(scratch, table, bases, constant, constants, sum_, sums):  # type: ignore[no-untyped-def]
    """Fill the registers of constants, and set sums to zero."""
    for k in range(constants):
        d = register(scratch, table, constant[2 * k])
        value = spread(d, real(d, double_of(constant[2 * k + 1])))
        for i in range(0, BLOCK, lanes_of(d)):
            store(d, i, value)
    for k in range(sums):
        x = pointer_to(scratch, bases[sum_[3 * k]], sum_[3 * k + 1])
        for i in range(sum_[3 * k + 2]):
            x[i] = 0.0
