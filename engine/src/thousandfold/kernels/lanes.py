"""Operations on vectors other than arithmetic: selection, roots, sums over lanes, and bits of numbers."""

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import int32_t
from numba.extending import intrinsic

from thousandfold.kernels.vector import Vector, call_lanewise, shuffle


@intrinsic
def fma(context, x, y, z):  # type: ignore[no-untyped-def]
    """Return x y + z, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        cast = (context.cast(builder, value, source, kind) for value, source in zip(args, signature.args))
        return call_lanewise(builder, "fma", *cast)

    kind = next(operand for operand in (x, y, z) if isinstance(operand, Vector))
    return kind(x, y, z), generate


@intrinsic
def select(context, truths, x, y):  # type: ignore[no-untyped-def]
    """Return x in each lane that is true, else y."""
    kind = x if isinstance(x, Vector) else y

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, y = (context.cast(builder, value, source, kind) for value, source in zip(args[1:], signature.args[1:]))
        return builder.select(args[0], x, y)

    return kind(truths, x, y), generate


def one_by_one(name: str) -> Any:
    """Return an LLVM intrinsic of one vector, applied to each lane."""

    @intrinsic
    def function(context, x):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return call_lanewise(builder, name, *args)

        return x(x), generate

    return function


square_root, absolute, floor = one_by_one("sqrt"), one_by_one("fabs"), one_by_one("floor")


def two_by_two(name: str) -> Any:
    """Return an LLVM intrinsic of two vectors, applied to each lane."""

    @intrinsic
    def function(context, x, y):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return call_lanewise(builder, name, *args)

        return x(x, y), generate

    return function


with_sign = two_by_two("copysign")  # |x| with the sign of y


@intrinsic
def sum_of_lanes(context, x):  # type: ignore[no-untyped-def]
    """Return the sum of the lanes, by adding halves until one number is left."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value, lanes = args[0], args[0].type.count
        while lanes > 1:
            lanes //= 2
            low = shuffle(builder, value, value, list(range(lanes)))
            high = shuffle(builder, value, value, list(range(lanes, 2 * lanes)))
            value = builder.fadd(low, high)
        return builder.extract_element(value, int32_t(0))

    return x.number(x), generate


@intrinsic
def power_of_two(context, n):  # type: ignore[no-untyped-def]
    """Return 2^n for an integer n whose power is a normal number."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector, (whole, places, bias) = args[0].type, layout(args[0].type)
        bits = builder.bitcast(builder.fadd(args[0], fill_vector(vector, 1.5 * 2.0**places)), whole)
        return builder.bitcast(
            builder.shl(builder.add(bits, fill_vector(whole, bias)), fill_vector(whole, places)), vector
        )

    return n(n), generate


@intrinsic
def whole_shift(context, like):  # type: ignore[no-untyped-def]
    """Return a constant that rounds a number to an integer when added, with the integer in the last bits of the sum."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return fill_vector(args[0].type, 1.5 * 2.0 ** layout(args[0].type)[1])

    return like(like), generate


@intrinsic
def times_power_of_two(context, x, shifted):  # type: ignore[no-untyped-def]
    """Return x 2^n from `shifted` = n + `whole_shift`, by two factors that do not overflow. The product may be subnormal."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector, (whole, places, bias) = args[0].type, layout(args[0].type)
        unit, by = fill_vector(whole, bias << places), fill_vector(whole, places)
        n = builder.shl(builder.bitcast(args[1], whole), by)  # into the exponent; this drops the bits of the shift
        first = builder.shl(builder.ashr(n, fill_vector(whole, places + 1)), by)
        powers = (builder.bitcast(builder.add(part, unit), vector) for part in (first, builder.sub(n, first)))
        value = args[0]
        for power in powers:
            value = builder.fmul(value, power)
        return value

    return x(x, x), generate


@intrinsic
def exponent_of(context, x):  # type: ignore[no-untyped-def]
    """Return the integer e for which x / 2^e is between the roots of 1/2 and 2, for a normal x > 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector, (whole, places, _) = args[0].type, layout(args[0].type)
        root = builder.bitcast(fill_vector(vector, 0.5**0.5), whole)
        e = builder.ashr(builder.sub(builder.bitcast(args[0], whole), root), fill_vector(whole, places))
        shift = fill_vector(vector, 1.5 * 2.0**places)
        return builder.fsub(builder.bitcast(builder.add(e, builder.bitcast(shift, whole)), vector), shift)

    return x(x), generate


@intrinsic
def half(context, x, second):  # type: ignore[no-untyped-def]
    """Return the first or second eight of sixteen floats as doubles."""
    kind = Vector(types.float64)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first, last = (shuffle(builder, args[0], args[0], list(range(i, i + 8))) for i in (0, 8))
        return builder.fpext(builder.select(args[1], last, first), context.get_value_type(kind))

    return kind(x, types.boolean), generate


@intrinsic
def join_lanes(context, x, y):  # type: ignore[no-untyped-def]
    """Return sixteen floats from two vectors of eight doubles."""
    kind = Vector(types.float32)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        eight = ir.VectorType(ir.FloatType(), 8)
        return shuffle(builder, builder.fptrunc(args[0], eight), builder.fptrunc(args[1], eight), list(range(16)))

    return kind(x, y), generate


def layout(vector: Any) -> tuple[Any, int, int]:
    """Return the integer type of a vector's bits, the number of bits of the mantissa, and the bias of the exponent."""
    single = vector.element == ir.FloatType()
    return ir.VectorType(ir.IntType(32 if single else 64), vector.count), *((23, 127) if single else (52, 1023))


def fill_vector(vector: Any, number: float) -> Any:
    return ir.Constant(vector, [number] * vector.count)


def constant(single: float, double: float) -> Any:
    """Return a function of a vector that returns one constant for floats and another for doubles."""

    @intrinsic
    def function(context, like):  # type: ignore[no-untyped-def]
        number = single if like.number == types.float32 else double
        return like(like), lambda context, builder, signature, args: fill_vector(args[0].type, number)

    return function


def polynomial(single: Sequence[float], double: Sequence[float]) -> Any:
    """Return a function that evaluates a polynomial in each lane. Coefficients begin with the constant term; floats need fewer of them."""

    @intrinsic
    def function(context, x):  # type: ignore[no-untyped-def]
        terms = single if x.number == types.float32 else double

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vector = args[0].type
            value = fill_vector(vector, terms[-1])
            for term in terms[-2::-1]:
                value = call_lanewise(builder, "fma", value, args[0], fill_vector(vector, term))
            return value

        return x(x), generate

    return function


@intrinsic
def as_numbers(context, truths, like):  # type: ignore[no-untyped-def]
    """Return 1 for true and 0 for false."""
    return like(truths, like), lambda context, builder, signature, args: builder.uitofp(*args[:1], args[1].type)
