"""MASK: a dropout mask, `scale` for kept elements and 0 for others, from sixteen bits of Philox per element (`member_functions.py`).

Number l of row r is element[r] + l stride. Philox-4x64-10 (Salmon et al. 2011) computes as many blocks at once as a vector register has
floats. Its words equal those of NumPy's Philox. No processor multiplies vectors of 64-bit words to 128 bits, so a product is assembled from
four products of 32-bit halves.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from thousandfold.codes import APART, KEY, MASK, REGISTERS, STEP
from thousandfold.kernels.fields import reader
from thousandfold.kernels.inner import compiled
from thousandfold.kernels.memory import address_of, ahead, pointer_from, pointer_to, real
from thousandfold.kernels.vector import INT, LANES, broadcast, shuffle, store, written

MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
STEPS = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)  # increments of the two words of the key per round
ROUNDS, HALF, LOW = 10, 32, 0xFFFFFFFF
WORDS = ir.VectorType(INT, LANES)


def constant(value: int) -> Any:
    return ir.Constant(WORDS, [value] * LANES)


def product(builder: Any, factor: int, x: Any) -> tuple[Any, Any]:
    """Return the upper and lower word of each product."""
    low_x, high_x = builder.and_(x, constant(LOW)), builder.lshr(x, constant(HALF))
    low_f, high_f = constant(factor & LOW), constant(factor >> HALF)
    low = builder.mul(low_f, low_x)
    cross = builder.add(builder.mul(high_f, low_x), builder.lshr(low, constant(HALF)))
    other = builder.add(builder.mul(low_f, high_x), builder.and_(cross, constant(LOW)))
    carried = builder.add(builder.lshr(cross, constant(HALF)), builder.lshr(other, constant(HALF)))
    upper = builder.add(builder.mul(high_f, high_x), carried)
    return upper, builder.or_(builder.and_(low, constant(LOW)), builder.shl(other, constant(HALF)))


@intrinsic
def blocks_of_words(context, key0, key1, site, step, first, into):  # type: ignore[no-untyped-def]
    """Write the four words of each block first .. first + LANES - 1 to an address, one block after another. NumPy counts blocks from 1."""

    def build(builder: Any, *args: Any) -> None:
        k0, k1, c2, c3, block = (broadcast(builder, word, LANES) for word in args[:5])
        c0, c1 = builder.add(block, ir.Constant(WORDS, list(range(1, LANES + 1)))), constant(0)
        for _ in range(ROUNDS):
            high0, low0 = product(builder, MULTIPLIERS[0], c0)
            high1, low1 = product(builder, MULTIPLIERS[1], c2)
            c0, c2 = builder.xor(builder.xor(high1, c1), k0), builder.xor(builder.xor(high0, c3), k1)
            c1, c3 = low1, low0
            k0, k1 = builder.add(k0, constant(STEPS[0])), builder.add(k1, constant(STEPS[1]))
        pair = list(range(2 * LANES))
        first, second = shuffle(builder, c0, c1, pair), shuffle(builder, c2, c3, pair)
        order = [lane + word * LANES for lane in range(LANES) for word in range(4)]
        store(builder, shuffle(builder, first, second, order), args[5], 8)

    word = types.uint64
    return written(types.void(word, word, word, word, word, types.int64), build)


BYTES = 32  # of a block of Philox, which serves sixteen elements

read = reader(MASK)
words_at, draws_at = pointer_from(types.uint64), pointer_from(types.uint16)


@compiled
def mask(scratch, table, bases, p):  # type: ignore[no-untyped-def]
    f = read(scratch, bases, p)
    keep, drop = real(f.out, f.scale), real(f.out, 0.0)
    key, now = words_at(bases[KEY]), words_at(bases[STEP])
    room = address_of(pointer_to(scratch, scratch.ctypes.data, REGISTERS * APART))
    for k in range(0, -(-f.size // 16), LANES):
        blocks_of_words(key[0], key[1], types.uint64(f.site), now[0], types.uint64(k), room + BYTES * k)
    draws = draws_at(room)
    for r in range(f.rows):
        drawn, out = ahead(draws, f.element[r]), ahead(f.out, f.into[r])
        for i in range(f.run):
            out[i] = keep if drawn[i * f.stride] >= f.threshold else drop
