"""Translation of instructions, except pointwise groups, to calls of functions of `instructions.py` or `products.py`. The tiles depend on
the number of threads. `p` has the fields of an instruction by name (`layouts.py`)."""

from collections.abc import Callable
from typing import Any

import numpy as np

from thousandfold.codes import ARENA, ARGMAX, BMM, GATHER, GEN, KEY, LIN, MASK, RED, SCATTER, STEP, WGRAD
from thousandfold.gpu.writer import Writer, literal

HELD_OUTPUTS = 24  # largest number of outputs of a product in a thread, which has 64 registers


def reduction(writer: Writer, p: Any) -> None:
    tables = [writer.table(table) for table in (p.io, p.oo, p.ro)]
    if p.kind == ARGMAX:
        writer.call("place_of_largest", (p.rows, p.run, p.terms, *tables), (p.out, p.x))
        return
    name, run = ("reduce_neighbours", p.together) if p.together else ("reduce", p.run)
    writer.call(name, (p.kind, p.rows, run, p.terms, *tables), (p.out, p.x))


def linear(writer: Writer, p: Any) -> None:
    tables = [writer.table(table) for table in (p.kx, p.kw, p.nw, p.nc, p.ob, p.rx)]
    flag = "true" if p.biased else "false"
    if any(offset != p.rw[0] for offset in p.rw):
        template = (p.rows, p.run, p.columns, p.terms, flag, *tables, writer.table(p.rw), writer.table(p.rc))
        writer.call("linear_by_row", template, (p.out, p.x, p.w, p.bias))
        return
    cost = lambda l, n: tasks(-(-p.rows * p.run // l) * -(-p.columns // n), writer) * (l * n + 4 * l + n)  # noqa: E731
    tiles = [(l, n) for l in (1, 2, 4) for n in (4, 8, 12, 16, 24) if l * n <= HELD_OUTPUTS]
    lanes, wide = min(tiles, key=lambda pair: cost(*pair))
    first = "true" if p.terms > 1 and abs(p.kw[1] - p.kw[0]) == 1 else "false"
    template = (p.rows, p.run, p.columns, p.terms, lanes, wide, flag, first, *tables, writer.table(p.rc))
    writer.call("linear", template, (p.out, p.x, (p.w[0], p.w[1] + p.rw[0]), p.bias))


def tasks(count: int, writer: Writer) -> int:
    """Return the number of tasks per thread."""
    return -(-count // writer.threads)


def weight_gradient(writer: Writer, p: Any) -> None:
    tables = [writer.table(table) for table in (p.ma, p.nb, p.mc, p.ka, p.kb)]
    template = (p.rows, p.columns, p.terms, p.run, *tile(p.rows, p.columns, writer), *tables)
    writer.call("weights_gradient", template, (p.out, p.a, p.b))


def tile(rows: int, columns: int, writer: Writer) -> tuple[int, int]:
    """Return the size of a tile of outputs that fits the threads and shared memory of `weights_gradient`."""
    tall, wide = rows, columns
    while -(-tall // 4) * -(-wide // 4) > writer.threads or (tall + wide + 40) * 8 > writer.shared:
        tall, wide = (-(-tall // 2), wide) if tall >= wide else (tall, -(-wide // 2))
    return tall, wide


def product(writer: Writer, p: Any) -> None:
    la, lb, lanes = (getattr(p, name, default) for name, default in (("la", 0), ("lb", 0), ("lanes", 1)))
    tables = [writer.table(table) for table in (p.oa, p.ob, p.oc, p.ma, p.ka, p.nb, p.kb, p.mc, p.nc)]

    def cost(m: int, n: int) -> int:
        return tasks(p.outer * -(-p.rows // m) * -(-p.columns // n) * lanes, writer) * (m * n + 4 * (m + n))

    tiles = [(m, n) for m in (1, 2, 4, 6, 8) for n in (1, 2, 4, 6, 8) if m * n <= HELD_OUTPUTS]
    tall, wide = min(tiles, key=lambda pair: cost(*pair))
    template = (p.outer, p.rows, p.columns, p.terms, lanes, la, lb, tall, wide, *tables)
    writer.call("product", template, (p.out, p.a, p.b))


def gathering(writer: Writer, p: Any) -> None:
    tables = [writer.table(table) for table in (p.io, p.xo, p.oo, p.xd, p.od)]
    writer.call("gather", (p.places, p.features, p.stride, *tables), (p.out, p.x, p.index))


def scattering(writer: Writer, p: Any) -> None:
    io, xo, vo = (np.array(table) for table in (p.io, p.xo, p.vo))
    # Places with different xo differ in the other dimensions of the output, so only places with equal xo can collide.
    order = np.argsort(xo, kind="stable")
    groups = len(np.unique(xo))
    if len(set(np.unique(xo, return_counts=True)[1])) > 1:
        groups, order = 1, np.arange(p.places)
    tables = [writer.table(table) for table in (io[order], xo[order], vo[order], p.xd, p.vd)]
    template = (p.zeros, "true" if p.adds else "false", groups, p.places // groups, p.features, p.stride, *tables)
    writer.call("scatter", template, (p.out, p.index, p.v))


def dropout(writer: Writer, p: Any) -> None:
    tables = [writer.table(table) for table in (p.element, p.into)]
    numbers = -(-p.size // 16) * 32 // writer.bytes
    fits = numbers <= writer.shared
    writer.scratch = max(writer.scratch, 0 if fits else numbers)
    draws = "shared" if fits else f"now[{ARENA}] + {writer.arena}"
    random = f"(const word*)now[{KEY}]", f"(const word*)now[{STEP}]", "number(1)", str(p.threshold), literal(p.scale)
    writer.call("mask", (p.size, p.rows, p.run, p.stride, *tables), (p.out,), draws, *random)
    writer.records[-1] += [half(p.site, 0), half(p.site, 32)]


def half(number: int, shift: int) -> int:
    """Return 32 bits of a number as a signed integer."""
    bits = number >> shift & 0xFFFFFFFF
    return bits - 2**32 if bits >= 2**31 else bits


CALLS: dict[int, Callable[[Writer, Any], None]] = {
    RED: reduction,
    LIN: linear,
    WGRAD: weight_gradient,
    BMM: product,
    GEN: product,
    GATHER: gathering,
    SCATTER: scattering,
    MASK: dropout,
}
