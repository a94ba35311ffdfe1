"""Translation of instructions, except pointwise groups, to calls of functions of `instructions.py` or `products.py`. The tiles depend on
the number of threads."""

import numpy as np

from thousandfold.codes import ARENA, ARGMAX, KEY, STEP
from thousandfold.gpu.writer import WordReader, Writer, literal

HELD_OUTPUTS = 24  # largest number of outputs of a product in a thread, which has 64 registers


def reduction(writer: Writer, p: WordReader) -> None:
    kind, out, x = p.one(), p.place(), p.place()
    rows, run, terms, neighbours = p.some(4)
    scale = literal(p.number())
    io, oo, ro = (writer.table(p.some(count)) for count in (rows, rows, terms))
    if kind == ARGMAX:
        writer.call("place_of_largest", (rows, run, terms, io, oo, ro), (out, x))
    elif neighbours:
        writer.call("reduce_neighbours", (kind, rows, neighbours, terms, io, oo, ro), (out, x), scale)
    else:
        writer.call("reduce", (kind, rows, run, terms, io, oo, ro), (out, x), scale)


def linear(writer: Writer, p: WordReader) -> None:
    x, w, out, bias = (p.place() for _ in range(4))
    biased, columns, terms, rows, run = p.some(5)
    kx, kw, nw, nc, columns_of_bias = (p.some(n) for n in (terms, terms, columns, columns, columns))
    rx, rw, rc = (p.some(rows) for _ in range(3))
    places = [writer.table(one) for one in (kx, kw, nw, nc, columns_of_bias, rx)]
    flag = "true" if biased else "false"
    if any(one != rw[0] for one in rw):
        own = (rows, run, columns, terms, flag, *places, writer.table(rw), writer.table(rc))
        writer.call("linear_by_row", own, (out, x, w, bias))
        return
    cost = lambda l, n: tasks(-(-rows * run // l) * -(-columns // n), writer) * (l * n + 4 * l + n)  # noqa: E731
    tiles = [(l, n) for l in (1, 2, 4) for n in (4, 8, 12, 16, 24) if l * n <= HELD_OUTPUTS]
    lanes, wide = min(tiles, key=lambda pair: cost(*pair))
    first = "true" if terms > 1 and abs(kw[1] - kw[0]) == 1 else "false"
    weights = w[0], w[1] + rw[0]
    own = (rows, run, columns, terms, lanes, wide, flag, first, *places, writer.table(rc))
    writer.call("linear", own, (out, x, weights, bias))


def tasks(count: int, writer: Writer) -> int:
    """Return the number of tasks per thread."""
    return -(-count // writer.threads)


def weight_gradient(writer: Writer, p: WordReader) -> None:
    a, b, out = (p.place() for _ in range(3))
    rows, columns, terms, run = p.some(4)
    ma, nb, mc, ka, kb = (writer.table(p.some(n)) for n in (rows, columns, rows, terms, terms))
    tall, wide = tile(rows, columns, writer)
    own = (rows, columns, terms, run, tall, wide, ma, nb, mc, ka, kb)
    writer.call("weights_gradient", own, (out, a, b))


def tile(rows: int, columns: int, writer: Writer) -> tuple[int, int]:
    """Return the size of a tile of outputs that fits the threads and shared memory of `weights_gradient`."""
    tall, wide = rows, columns
    while -(-tall // 4) * -(-wide // 4) > writer.threads or (tall + wide + 40) * 8 > writer.shared:
        tall, wide = (-(-tall // 2), wide) if tall >= wide else (tall, -(-wide // 2))
    return tall, wide


def product(writer: Writer, p: WordReader, with_lanes: bool) -> None:
    a, b, out = (p.place() for _ in range(3))
    la, lb = p.some(2) if with_lanes else (0, 0)
    count, rows, columns, terms = p.some(4)
    lanes = p.one() if with_lanes else 1
    sizes = (count, count, count, rows, terms, columns, terms, rows, columns)
    tables = [writer.table(p.some(size)) for size in sizes]
    cost = lambda m, n: tasks(count * -(-rows // m) * -(-columns // n) * lanes, writer) * (m * n + 4 * (m + n))  # noqa: E731
    tiles = [(m, n) for m in (1, 2, 4, 6, 8) for n in (1, 2, 4, 6, 8) if m * n <= HELD_OUTPUTS]
    tall, wide = min(tiles, key=lambda pair: cost(*pair))
    own = (count, rows, columns, terms, lanes, la, lb, tall, wide, *tables)
    writer.call("product", own, (out, a, b))


def gathering(writer: Writer, p: WordReader) -> None:
    x, index, out = (p.place() for _ in range(3))
    places, features, stride = p.some(3)
    tables = [writer.table(p.some(size)) for size in (places, places, places, features, features)]
    writer.call("gather", (places, features, stride, *tables), (out, x, index))


def scattering(writer: Writer, p: WordReader) -> None:
    out, index, v = (p.place() for _ in range(3))
    zeros, adds, places, features, stride = p.some(5)
    io, xo, vo, xd, vd = (np.array(p.some(size)) for size in (places, places, places, features, features))
    # Places with different xo differ in the other dimensions of the output, so only places with equal xo can collide.
    order = np.argsort(xo, kind="stable")
    groups = len(np.unique(xo))
    if len(set(np.unique(xo, return_counts=True)[1])) > 1:
        groups, order = 1, np.arange(places)
    tables = [writer.table(one) for one in (io[order], xo[order], vo[order], xd, vd)]
    own = (zeros, "true" if adds else "false", groups, places // groups, features, stride, *tables)
    writer.call("scatter", own, (out, index, v))


def dropout(writer: Writer, p: WordReader) -> None:
    out, site, threshold, scale = p.place(), p.one(), p.one(), literal(p.number())
    size, rows, lanes, stride = p.some(4)
    tables = [writer.table(p.some(rows)) for _ in range(2)]
    numbers = -(-size // 16) * 32 // writer.bytes
    fits = numbers <= writer.shared
    writer.scratch = max(writer.scratch, 0 if fits else numbers)
    draws = "shared" if fits else f"now[{ARENA}] + {writer.arena}"
    own = (size, rows, lanes, stride, *tables)
    random = f"(const word*)now[{KEY}]", f"(const word*)now[{STEP}]", "number(1)", str(threshold), scale
    writer.call("mask", own, (out,), draws, *random)
    writer.records[-1] += [half(site, 0), half(site, 32)]


def half(number: int, shift: int) -> int:
    """Return 32 bits of a number as a signed integer."""
    bits = number >> shift & 0xFFFFFFFF
    return bits - 2**32 if bits >= 2**31 else bits
