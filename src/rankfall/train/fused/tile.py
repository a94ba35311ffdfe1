"""Small products whose sums stay in vector registers, written as LLVM vectors: what a loop in Python's syntax cannot express.

An activation lies in memory as (features, R), number t * sequences + b of a row being of token t of sequence b, so that hardly an
operation runs across a vector. One product is

    C[r, n] (+)= sum_k A[r, k] B[k, n],   r < ROWS, n < COLUMNS,   every C[r, n] and B[k, n] a vector,

and A[r, k] is a number (a weight, for all sequences) or a vector (an activation). Addresses are in bytes, strides in floats.
"""

from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic

from rankfall.train.fused.compiled import SETTINGS


def host_features() -> set[str]:
    """What the processor that numba compiles for can do."""
    if SETTINGS.CPU_FEATURES is not None:  # NUMBA_CPU_FEATURES
        return {name[1:] for name in SETTINGS.CPU_FEATURES.split(",") if name.startswith("+")}
    return {name for name, there in binding.get_host_cpu_features().items() if there}


def shape(features: set[str]) -> tuple[int, int, int]:
    """Floats in a vector register; rows and columns of a tile: as many sums as hide the latency of a multiplication and fit the registers
    (32 with AVX-512 and on ARM, 16 with AVX2)."""
    if "avx512f" in features:
        return 16, 4, 4
    return (8, 4, 3) if "avx" in features else (4, 4, 4)


LANES, ROWS, COLUMNS = shape(host_features())
FLOAT, INT, SHORT = ir.FloatType(), ir.IntType(64), ir.IntType(32)
VECTOR = ir.VectorType(FLOAT, LANES)
CONTRACT = ("contract",)  # a multiplication and an addition may be one instruction


def address(builder: Any, base: Any, *terms: tuple[Any, int]) -> Any:
    """base + 4 * sum of stride * count, in bytes."""
    for stride, count in terms:
        if count:
            base = builder.add(base, builder.mul(stride, INT(4 * count)))
    return base


def load(builder: Any, place: Any, kind: Any) -> Any:
    return builder.load(builder.inttoptr(place, kind.as_pointer()), align=4)


def store(builder: Any, value: Any, place: Any, align: int = 4) -> None:
    builder.store(value, builder.inttoptr(place, value.type.as_pointer()), align=align)


def first_of(builder: Any, count: Any, lanes: int) -> Any:
    """Which lanes of a vector are its first `count`, or all."""
    places = ir.Constant(ir.VectorType(INT, lanes), list(range(lanes)))
    return builder.icmp_signed("<", places, spread_over(builder, count, lanes))


def store_some(builder: Any, value: Any, place: Any, count: Any) -> None:
    """The first `count` numbers of a vector, or all."""
    some, into = first_of(builder, count, value.type.count), builder.inttoptr(place, value.type.as_pointer())
    kinds = [value.type, into.type, SHORT, some.type]
    masked = declared(builder, f"llvm.masked.store.v{value.type.count}f32.p0", ir.VoidType(), kinds)
    builder.call(masked, [value, into, SHORT(4), some])


def load_some(builder: Any, place: Any, kind: Any, count: Any) -> Any:
    """A vector whose first `count` numbers, or all, are read; the others are zeros, and what lies there is not touched."""
    some, from_ = first_of(builder, count, kind.count), builder.inttoptr(place, kind.as_pointer())
    kinds = [from_.type, SHORT, some.type, kind]
    masked = declared(builder, f"llvm.masked.load.v{kind.count}f32.p0", kind, kinds)
    return builder.call(masked, [from_, SHORT(4), some, ir.Constant(kind, [0.0] * kind.count)])


def declared(builder: Any, name: str, returned: Any, kinds: list[Any]) -> Any:
    """A function of LLVM's own."""
    return builder.module.globals.get(name) or ir.Function(builder.module, ir.FunctionType(returned, kinds), name)


def shuffled(builder: Any, x: Any, y: Any, places: list[int]) -> Any:
    """A vector of the elements of x and y at these places, y's counted after x's."""
    return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(SHORT, len(places)), places))


def spread_over(builder: Any, number: Any, lanes: int) -> Any:
    """A number in all lanes of a vector."""
    empty = ir.Constant(ir.VectorType(number.type, lanes), ir.Undefined)
    first = builder.insert_element(empty, number, SHORT(0))
    return shuffled(builder, first, empty, [0] * lanes)


def spread(builder: Any, number: Any) -> Any:
    return spread_over(builder, number, LANES)


def across(builder: Any, vectors: list[Any]) -> list[Any]:
    """The sums over the lanes of each vector, side by side in few vectors. Pairs of vectors become one whose halves are theirs, so that few
    additions are needed for many; a pair that is missing is a vector with itself."""
    sums, own = list(vectors), 1  # own: how many of the given vectors share one
    even, odd = list(range(0, 2 * LANES, 2)), list(range(1, 2 * LANES, 2))
    while own < LANES:
        if len(sums) % 2:
            sums.append(sums[-1])
        pairs = list(zip(sums[::2], sums[1::2]))
        halves = [(shuffled(builder, x, y, even), shuffled(builder, x, y, odd)) for x, y in pairs]
        sums, own = [builder.fadd(x, y) for x, y in halves], 2 * own
    return sums


def add_numbers(builder: Any, sums: list[Any], first: int, count: int, place: Any) -> None:
    """Adds the sums first .. first + count - 1 to as many neighbouring numbers."""
    while count:
        here = min(count, LANES - first % LANES)  # of one vector
        some = sums[first // LANES]
        numbers = shuffled(builder, some, some, [first % LANES + i for i in range(here)])
        store(builder, builder.fadd(load(builder, place, numbers.type), numbers), place)
        first, count, place = first + here, count - here, builder.add(place, INT(4 * here))


@intrinsic
def prefetch(context, place):  # type: ignore[no-untyped-def]
    """Has the line of the cache at an address brought nearer; nothing waits for it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place, name = builder.inttoptr(args[0], FLOAT.as_pointer()), "llvm.prefetch.p0"
        ask = declared(builder, name, ir.VoidType(), [place.type, SHORT, SHORT, SHORT])
        builder.call(ask, [place, SHORT(0), SHORT(2), SHORT(1)])  # to read; near, not nearest; data
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def transpose_block(context, x, row, y, column):  # type: ignore[no-untyped-def]
    """y[j, i] = x[i, j], both (LANES, LANES) at addresses, whose rows begin `row` and `column` floats apart."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, row, y, column = args
        found = [load(builder, address(builder, x, (row, i)), VECTOR) for i in range(LANES)]
        apart = LANES // 2  # two rows that far apart change places of half of each pair of blocks
        while apart:
            low = [j if not j & apart else j - apart + LANES for j in range(LANES)]
            high = [j + apart if not j & apart else j + LANES for j in range(LANES)]
            for i in range(LANES):
                if not i & apart:
                    a, b = found[i], found[i + apart]
                    found[i], found[i + apart] = shuffled(builder, a, b, low), shuffled(builder, a, b, high)
            apart //= 2
        for j, value in enumerate(found):
            store(builder, value, address(builder, y, (column, j)))
        return context.get_dummy_value()

    return types.void(*(types.int64,) * 4), generate


# What a tile does: A are numbers (weights) and the sums start at zero, at a bias for each row, or at C; A are vectors; or A are
# vectors and C are numbers, to which the sums over the lanes are added; then neighbouring columns of C are neighbours in memory.
# LANEWISE_HALF has vectors of half the length: where few sequences are left, a whole vector would multiply mostly what is not wanted.
# LANEWISE_ROUNDED rounds each product before it is added, so that x y - u v is exactly -(u v - x y).
# SOME_ADD adds its sums to C, of whose rows only so many numbers are read and written.
WEIGHTS, WEIGHTS_BIAS, WEIGHTS_ADD, SOME_ADD, LANEWISE, LANEWISE_HALF, LANEWISE_ROUNDED, OVER_LANES = range(8)


@intrinsic(prefer_literal=True)
def tile(context, kind, rows, columns, A, ar, ak, B, bk, bn, C, cr, cn, count, extra):  # type: ignore[no-untyped-def]
    signature = types.void(kind, rows, columns, *(types.int64,) * 11)  # one function for each kind and size
    kind, rows, columns = (one.literal_value for one in (kind, rows, columns))
    places = [(r, n) for r in range(rows) for n in range(columns)]
    vector = ir.VectorType(FLOAT, LANES // 2) if kind == LANEWISE_HALF else VECTOR
    masked = kind in (LANEWISE, LANEWISE_HALF, LANEWISE_ROUNDED)
    vectors = masked or kind == OVER_LANES  # A are
    flags = () if kind == LANEWISE_ROUNDED else CONTRACT

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        A, ar, ak, B, bk, bn, C, cr, cn, count, extra = args[3:]
        at = {(r, n): address(builder, C, (cr, r), (cn, n)) for r, n in places}
        left = [builder.sub(extra, INT(LANES * n)) for n in range(columns)] if kind == SOME_ADD else []
        if kind == WEIGHTS_ADD:
            first = [load(builder, at[place], vector) for place in places]
        elif kind == WEIGHTS_BIAS:
            given = [spread(builder, load(builder, address(builder, extra, (INT(1), r)), FLOAT)) for r in range(rows)]
            first = [given[r] for r, n in places]
        else:
            first = [ir.Constant(vector, [0.0] * vector.count)] * len(places)
        before, loop, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
        step_a, step_b = builder.mul(ak, INT(4)), builder.mul(bk, INT(4))
        builder.branch(loop)
        builder.position_at_end(loop)
        k, a, b = builder.phi(INT), builder.phi(INT), builder.phi(INT)
        sums = [builder.phi(vector) for _ in places]
        for phi, value in zip([k, a, b, *sums], [INT(0), A, B, *first]):
            phi.add_incoming(value, before)
        columns_of_b = [load(builder, address(builder, b, (bn, n)), vector) for n in range(columns)]
        found = []
        for r in range(rows):
            place = address(builder, a, (ar, r))
            row = load(builder, place, vector) if vectors else spread(builder, load(builder, place, FLOAT))
            for n in range(columns):
                term = builder.fmul(row, columns_of_b[n], flags=flags)
                found.append(builder.fadd(sums[r * columns + n], term, flags=flags))
        following = builder.add(k, INT(1))
        for phi, value in zip([k, a, b, *sums], [following, builder.add(a, step_a), builder.add(b, step_b), *found]):
            phi.add_incoming(value, loop)
        builder.cbranch(builder.icmp_signed("<", following, count), loop, after)
        builder.position_at_end(after)
        if kind == OVER_LANES:
            totals = across(builder, found)
            for r in range(rows):
                add_numbers(builder, totals, r * columns, columns, at[r, 0])
        else:
            for place, value in zip(places, found):
                if kind == SOME_ADD:
                    wanted = left[place[1]]
                    before = load_some(builder, at[place], vector, wanted)
                    store_some(builder, builder.fadd(before, value), at[place], wanted)
                elif masked:
                    store_some(builder, value, at[place], extra)
                else:
                    store(builder, value, at[place])
        return context.get_dummy_value()

    return signature, generate
