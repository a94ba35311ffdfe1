"""Operations on vectors other than arithmetic: selection, roots, sums over lanes, and bits of numbers."""

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import int32_t
from numba.extending import intrinsic

from thousandfold.kernels.vector import Vector, call_lanewise, shuffle, written


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


def of_vector(build: Callable[[Any, Any], Any]) -> Any:
    """Return a function of a vector with a result of its type. `build` writes its LLVM code from a builder and the operand."""

    @intrinsic
    def function(context, x):  # type: ignore[no-untyped-def]
        return written(x(x), build)

    return function


def of_two_vectors(build: Callable[[Any, Any, Any], Any]) -> Any:
    """Return a function of two vectors of one type, with a result of this type."""

    @intrinsic
    def function(context, x, y):  # type: ignore[no-untyped-def]
        return written(x(x, y), build)

    return function


def one_by_one(name: str) -> Any:
    """Return an LLVM intrinsic of one vector, applied to each lane."""
    return of_vector(lambda builder, x: call_lanewise(builder, name, x))


def two_by_two(name: str) -> Any:
    """Return an LLVM intrinsic of two vectors, applied to each lane."""
    return of_two_vectors(lambda builder, x, y: call_lanewise(builder, name, x, y))


square_root, absolute, floor = one_by_one("sqrt"), one_by_one("fabs"), one_by_one("floor")
with_sign = two_by_two("copysign")  # |x| with the sign of y


@intrinsic
def sum_of_lanes(context, x):  # type: ignore[no-untyped-def]
    """Return the sum of the lanes, by adding halves until one number is left."""

    def build(builder: Any, value: Any) -> Any:
        lanes = value.type.count
        while lanes > 1:
            lanes //= 2
            low = shuffle(builder, value, value, list(range(lanes)))
            high = shuffle(builder, value, value, list(range(lanes, 2 * lanes)))
            value = builder.fadd(low, high)
        return builder.extract_element(value, int32_t(0))

    return written(x.number(x), build)


@of_vector
def power_of_two(builder: Any, n: Any) -> Any:
    """Return 2^n for an integer n whose power is a normal number."""
    whole, places, bias = layout(n.type)
    bits = builder.bitcast(builder.fadd(n, fill_vector(n.type, 1.5 * 2.0**places)), whole)
    return builder.bitcast(builder.shl(builder.add(bits, fill_vector(whole, bias)), fill_vector(whole, places)), n.type)


@of_vector
def whole_shift(builder: Any, like: Any) -> Any:
    """Return a constant that rounds a number to an integer when added, with the integer in the last bits of the sum."""
    return fill_vector(like.type, 1.5 * 2.0 ** layout(like.type)[1])


@of_two_vectors
def times_power_of_two(builder: Any, x: Any, shifted: Any) -> Any:
    """Return x 2^n from `shifted` = n + `whole_shift`, by two factors that do not overflow. The product may be subnormal."""
    whole, places, bias = layout(x.type)
    unit, by = fill_vector(whole, bias << places), fill_vector(whole, places)
    n = builder.shl(builder.bitcast(shifted, whole), by)  # into the exponent; this drops the bits of the shift
    first = builder.shl(builder.ashr(n, fill_vector(whole, places + 1)), by)
    powers = (builder.bitcast(builder.add(part, unit), x.type) for part in (first, builder.sub(n, first)))
    for power in powers:
        x = builder.fmul(x, power)
    return x


@of_vector
def exponent_of(builder: Any, x: Any) -> Any:
    """Return the integer e for which x / 2^e is between the roots of 1/2 and 2, for a normal x > 0."""
    whole, places, _ = layout(x.type)
    root = builder.bitcast(fill_vector(x.type, 0.5**0.5), whole)
    e = builder.ashr(builder.sub(builder.bitcast(x, whole), root), fill_vector(whole, places))
    shift = fill_vector(x.type, 1.5 * 2.0**places)
    return builder.fsub(builder.bitcast(builder.add(e, builder.bitcast(shift, whole)), x.type), shift)


@intrinsic
def half(context, x, second):  # type: ignore[no-untyped-def]
    """Return the first or second eight of sixteen floats as doubles."""
    kind = Vector(types.float64)

    def build(builder: Any, x: Any, second: Any) -> Any:
        first, last = (shuffle(builder, x, x, list(range(i, i + 8))) for i in (0, 8))
        return builder.fpext(builder.select(second, last, first), kind.llvm)

    return written(kind(x, types.boolean), build)


@intrinsic
def join_lanes(context, x, y):  # type: ignore[no-untyped-def]
    """Return sixteen floats from two vectors of eight doubles."""
    eight = ir.VectorType(ir.FloatType(), 8)
    build = lambda builder, x, y: shuffle(builder, *(builder.fptrunc(part, eight) for part in (x, y)), list(range(16)))  # noqa: E731
    return written(Vector(types.float32)(x, y), build)


def layout(vector: Any) -> tuple[Any, int, int]:
    """Return the integer type of a vector's bits, the number of bits of the mantissa, and the bias of the exponent."""
    bits, places, bias = (32, 23, 127) if is_single(vector) else (64, 52, 1023)
    return ir.VectorType(ir.IntType(bits), vector.count), places, bias


def is_single(vector: Any) -> bool:
    return bool(vector.element == ir.FloatType())


def fill_vector(vector: Any, number: float) -> Any:
    return ir.Constant(vector, [number] * vector.count)


def constant(single: float, double: float) -> Any:
    """Return a function of a vector that returns one constant for floats and another for doubles."""
    return of_vector(lambda builder, like: fill_vector(like.type, single if is_single(like.type) else double))


def polynomial(single: Sequence[float], double: Sequence[float]) -> Any:
    """Return a function that evaluates a polynomial in each lane. Coefficients begin with the constant term; floats need fewer of them."""

    @of_vector
    def evaluate(builder: Any, x: Any) -> Any:
        terms = single if is_single(x.type) else double
        value = fill_vector(x.type, terms[-1])
        for term in terms[-2::-1]:
            value = call_lanewise(builder, "fma", value, x, fill_vector(x.type, term))
        return value

    return evaluate


@intrinsic
def as_numbers(context, truths, like):  # type: ignore[no-untyped-def]
    """Return 1 for true and 0 for false."""
    return written(like(truths, like), lambda builder, truths, like: builder.uitofp(truths, like.type))
