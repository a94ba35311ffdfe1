"""Transposition, one square of vectors at a time."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from thousandfold.kernels.memory import REGISTER
from thousandfold.kernels.registers import INT, first_of, load_masked, shuffle


def block(masked: bool) -> Any:
    """Return a function that sets y[j row + i] = x[rows[min(i, last)] + j] for i, j < lanes of a register, and if `masked`, j < count."""

    @intrinsic
    def transposed(context, x, rows, last, y, row, count):  # type: ignore[no-untyped-def]
        lanes = REGISTER * 8 // x.dtype.bitwidth

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            x_, rows_, last_, y_, row_, count_ = args
            vector = ir.VectorType(context.get_value_type(x.dtype), lanes)
            align, some, found = REGISTER // lanes, first_of(builder, count_, lanes), []
            for i in range(lanes):
                index = builder.select(builder.icmp_signed("<", INT(i), last_), INT(i), last_)
                place = builder.gep(x_, [builder.load(builder.gep(rows_, [index]))])
                place = builder.bitcast(place, vector.as_pointer())
                if masked:
                    found.append(load_masked(builder, place, some, vector, align))
                else:
                    found.append(builder.load(place, align=align))
            for j, value in enumerate(exchange(builder, found)):
                place = builder.gep(y_, [builder.mul(row_, INT(j))])
                if masked:
                    with builder.if_then(builder.icmp_signed("<", INT(j), count_)):
                        builder.store(value, builder.bitcast(place, vector.as_pointer()), align=align)
                else:
                    builder.store(value, builder.bitcast(place, vector.as_pointer()), align=align)
            return context.get_dummy_value()

        table, whole = types.CPointer(types.int64), types.int64
        return types.void(x, table, whole, x, whole, whole), generate

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
