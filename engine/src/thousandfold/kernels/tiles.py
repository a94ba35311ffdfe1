"""The innermost loop of all products. It computes as many sums as fit the registers of this processor, term by term.

    C[i, j] = first + sum over k of A[i, k] B[k, j]

C[i, j] and B[k, j] are vectors of the processor's length; A[i, k] is a number or a vector. Tables of offsets, in numbers, give their
positions. Each sum is taken in the order of k, so the bits do not depend on the size of a tile or the length of a vector.

And transposition, one square of vectors at a time.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from thousandfold.kernels.memory import REGISTER
from thousandfold.kernels.vector import (
    INT,
    Vector,
    broadcast,
    call_lanewise,
    first_of,
    host_features,
    load_lanes,
    shuffle,
    store_lanes,
    written,
)

REGISTERS = 32 if "avx512f" in host_features() or "avx" not in host_features() else 16
MOST_ROWS, MOST_VECTORS = (8, 3) if REGISTERS == 32 else (4, 3)  # tile of numbers times vectors
SQUARE = (4, 4) if REGISTERS == 32 else (3, 3)  # tile of vectors times vectors
BIAS, ADDED = 1, 2


def register_of(number: Any) -> Any:
    """Return the type of a vector that fills a register of this processor."""
    return ir.VectorType(Vector(number).llvm.element, REGISTER * 8 // number.bitwidth)


def tile(rows: int, columns: int, vectors: bool, apart: bool, masked: bool, rounded: bool = False) -> Any:
    """Return the loop for a number of rows and columns: (A, ma, ka, B, nb, kb, C, mc, nc, count, left, first, mf, how).

    `vectors`: A consists of vectors. `apart`: columns are at the offsets nb and nc, and `used` lanes of each are used; otherwise columns
    are consecutive vectors, and `used` of all their lanes are used. `masked`: unused lanes are neither read nor written. `rounded`:
    products are rounded before they are added. `how`: BIAS starts sums at first[mf[i]] instead of zero; ADDED adds them to C.
    """

    @intrinsic
    def loop(context, A, ma, ka, B, nb, kb, C, mc, nc, count, used, first, mf, how):  # type: ignore[no-untyped-def]
        table, whole = types.CPointer(types.int64), types.int64
        signature = types.void(A, table, table, A, table, table, A, table, table, whole, whole, A, table, whole)
        vector = register_of(A.dtype)
        return written(signature, lambda builder, *args: build(Loop(builder, vector, *args)))

    class Loop:
        def __init__(self, builder: Any, vector: Any, *args: Any) -> None:
            self.builder, self.vector, self.align = builder, vector, REGISTER // vector.count
            (self.A, self.ma, self.ka, self.B, self.nb, self.kb, self.C, self.mc, self.nc) = args[:9]
            self.count, self.used, self.first, self.mf, self.how = args[9:]
            self.wanted: list[Any] = [None] * columns
            if masked:
                for j in range(columns):
                    if apart or j == columns - 1:
                        count = self.used if apart else builder.sub(self.used, INT(j * vector.count))
                        self.wanted[j] = first_of(builder, count, vector.count)

        def entry(self, table: Any, i: Any) -> Any:
            return self.builder.load(self.builder.gep(table, [INT(i) if isinstance(i, int) else i]))

        def column(self, table: Any, j: int) -> Any:
            return self.entry(table, j) if apart else INT(j * self.vector.count)

        def read(self, pointer: Any, offset: Any, j: int) -> Any:
            place = self.builder.bitcast(self.builder.gep(pointer, [offset]), self.vector.as_pointer())
            return load_lanes(self.builder, place, self.wanted[j], self.vector, self.align)

        def write(self, value: Any, pointer: Any, offset: Any, j: int) -> None:
            place = self.builder.bitcast(self.builder.gep(pointer, [offset]), self.vector.as_pointer())
            store_lanes(self.builder, value, place, self.wanted[j], self.align)

        def spread(self, pointer: Any, offset: Any) -> Any:
            number = self.builder.load(self.builder.gep(pointer, [offset]))
            return broadcast(self.builder, number, self.vector.count)

        def term(self, a: Any, b: Any, total: Any) -> Any:
            if rounded:
                return self.builder.fadd(total, self.builder.fmul(a, b))
            return call_lanewise(self.builder, "fma", a, b, total)

    def build(self: Loop) -> None:
        builder = self.builder
        begins = [builder.gep(self.A, [self.entry(self.ma, i)]) for i in range(rows)]
        at_b, at_c = ([self.column(t, j) for j in range(columns)] for t in (self.nb, self.nc))
        has_first = builder.icmp_signed("!=", builder.and_(self.how, INT(BIAS)), INT(0))
        zeros = [ir.Constant(self.vector, [0.0] * self.vector.count)] * rows
        before = builder.block
        with builder.if_then(has_first):
            starts = [self.spread(self.first, self.entry(self.mf, i)) for i in range(rows)]
            bias_block = builder.block
        firsts = []
        for zero, value in zip(zeros, starts, strict=True):
            phi = builder.phi(self.vector)
            phi.add_incoming(zero, before)
            phi.add_incoming(value, bias_block)
            firsts.append(phi)
        before, loop, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
        builder.branch(loop)
        builder.position_at_end(loop)
        k = builder.phi(INT)
        sums = [builder.phi(self.vector) for _ in range(rows * columns)]
        k.add_incoming(INT(0), before)
        for n, phi in enumerate(sums):
            phi.add_incoming(firsts[n // columns], before)
        b_row, a_column = builder.gep(self.B, [self.entry(self.kb, k)]), self.entry(self.ka, k)
        b = [self.read(b_row, at_b[j], j) for j in range(columns)]
        totals = []
        for i in range(rows):
            a = self.read(begins[i], a_column, columns - 1) if vectors else self.spread(begins[i], a_column)
            totals += [self.term(a, b[j], sums[i * columns + j]) for j in range(columns)]
        # LLVM would unroll two terms, which needs too many registers. Opaque inline assembly prevents this.
        builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", [], True)
        following = builder.add(k, INT(1))
        k.add_incoming(following, loop)
        for phi, value in zip(sums, totals, strict=True):
            phi.add_incoming(value, loop)
        builder.cbranch(builder.icmp_signed("<", following, self.count), loop, after)
        builder.position_at_end(after)
        places = []
        for i in range(rows):
            row = builder.gep(self.C, [self.entry(self.mc, i)])
            places += [(row, j) for j in range(columns)]
        with builder.if_else(builder.icmp_signed("!=", builder.and_(self.how, INT(ADDED)), INT(0))) as (
            then,
            otherwise,
        ):
            with then:
                for (row, j), value in zip(places, totals, strict=True):
                    self.write(builder.fadd(self.read(row, at_c[j], j), value), row, at_c[j], j)
            with otherwise:
                for (row, j), value in zip(places, totals, strict=True):
                    self.write(value, row, at_c[j], j)

    return loop


def block(masked: bool) -> Any:
    """Return a function that sets y[j row + i] = x[rows[min(i, last)] + j] for i, j < lanes of a register, and if `masked`, j < count."""

    @intrinsic
    def transposed(context, x, rows, last, y, row, count):  # type: ignore[no-untyped-def]
        vector = register_of(x.dtype)
        lanes = vector.count

        def build(builder: Any, x_: Any, rows_: Any, last_: Any, y_: Any, row_: Any, count_: Any) -> None:
            align, mask, vectors = REGISTER // lanes, first_of(builder, count_, lanes) if masked else None, []
            for i in range(lanes):
                index = builder.select(builder.icmp_signed("<", INT(i), last_), INT(i), last_)
                place = builder.gep(x_, [builder.load(builder.gep(rows_, [index]))])
                place = builder.bitcast(place, vector.as_pointer())
                vectors.append(load_lanes(builder, place, mask, vector, align))
            for j, value in enumerate(exchange(builder, vectors)):
                place = builder.gep(y_, [builder.mul(row_, INT(j))])
                if masked:
                    with builder.if_then(builder.icmp_signed("<", INT(j), count_)):
                        builder.store(value, builder.bitcast(place, vector.as_pointer()), align=align)
                else:
                    builder.store(value, builder.bitcast(place, vector.as_pointer()), align=align)

        table, whole = types.CPointer(types.int64), types.int64
        return written(types.void(x, table, whole, x, whole, whole), build)

    return transposed


def exchange(builder: Any, rows: list[Any]) -> list[Any]:
    """Return the columns of a square. Rows at distance `apart` exchange halves of each pair of blocks, from the largest blocks down."""
    rows, lanes = list(rows), len(rows)
    apart = lanes // 2
    while apart:
        low = [j if not j & apart else j - apart + lanes for j in range(lanes)]
        high = [j + apart if not j & apart else j + lanes for j in range(lanes)]
        for i in range(lanes):
            if not i & apart:
                a, b = rows[i], rows[i + apart]
                rows[i], rows[i + apart] = shuffle(builder, a, b, low), shuffle(builder, a, b, high)
        apart //= 2
    return rows


whole_block, part_block = block(False), block(True)
