# mypy: disable-error-code="call-arg"
"""The pointwise operations. Each is a loop over a block of numbers, whose last vector may be partial."""

from thousandfold import codes
from thousandfold.kernels.functions import (
    cosine,
    error_function,
    exponential,
    exponential_less_one,
    hyperbolic_tangent,
    logarithm,
    logarithm_of_more,
    logistic,
    normal_below,
    power,
    reciprocal_root,
    sign,
    sine,
)
from thousandfold.kernels.inner import compiled, joint
from thousandfold.kernels.lanes import absolute, as_numbers, floor, select, square_root
from thousandfold.kernels.memory import lanes_of, load, load_some, store, store_some

# The last vector of a block overlaps the previous one, since partial writes are slow. It is computed first, since d may be a.


@joint
def one(f, d, a, n):  # type: ignore[no-untyped-def]
    """Compute d = f(a)."""
    lanes = lanes_of(d)
    if n < lanes:
        store_some(d, 0, f(load_some(a, 0, n)), n)
        return
    end = n - lanes
    last = f(load(a, end))
    for i in range(0, end, lanes):
        store(d, i, f(load(a, i)))
    store(d, end, last)


@joint
def two(f, d, a, b, n):  # type: ignore[no-untyped-def]
    lanes = lanes_of(d)
    if n < lanes:
        store_some(d, 0, f(load_some(a, 0, n), load_some(b, 0, n)), n)
        return
    end = n - lanes
    last = f(load(a, end), load(b, end))
    for i in range(0, end, lanes):
        store(d, i, f(load(a, i), load(b, i)))
    store(d, end, last)


@joint
def three(f, d, a, b, c, n):  # type: ignore[no-untyped-def]
    lanes = lanes_of(d)
    if n < lanes:
        store_some(d, 0, f(load_some(a, 0, n), load_some(b, 0, n), load_some(c, 0, n)), n)
        return
    end = n - lanes
    last = f(load(a, end), load(b, end), load(c, end))
    for i in range(0, end, lanes):
        store(d, i, f(load(a, i), load(b, i), load(c, i)))
    store(d, end, last)


add = joint(lambda x, y: x + y)
subtract = joint(lambda x, y: x - y)
multiply = joint(lambda x, y: x * y)
divide = joint(lambda x, y: x / y)
# NaN if either operand is NaN
larger = joint(lambda x, y: select((x > y) | (x != x), x, y))
smaller = joint(lambda x, y: select((x < y) | (x != x), x, y))
multiply_and_add = joint(lambda x, y, z: x * y + z)
subtract_what_is_multiplied = joint(lambda x, y, z: z - x * y)
multiply_three = joint(lambda x, y, z: x * y * z)
subtract_and_multiply = joint(lambda x, y, z: (x - y) * z)
choose = joint(lambda x, y, z: select(x != 0.0, y, z))
negative = joint(lambda x: -x)
same = joint(lambda x: x)
magnitude = joint(lambda x: absolute(x))
whole_part = joint(lambda x: floor(x))
root = joint(lambda x: square_root(x))
reciprocal = joint(lambda x: 1.0 / x)
sine_of = joint(lambda x: sine(x))
cosine_of = joint(lambda x: cosine(x))
power_of = joint(lambda x, y: power(x, y))
below = joint(lambda x, e: normal_below(x, e))
# true is 1 and false is 0; as an operand, any number other than 0 is true
equal = joint(lambda x, y: as_numbers(x == y, x))
unequal = joint(lambda x, y: as_numbers(x != y, x))
less = joint(lambda x, y: as_numbers(x < y, x))
less_equal = joint(lambda x, y: as_numbers(x <= y, x))
greater = joint(lambda x, y: as_numbers(x > y, x))
greater_equal = joint(lambda x, y: as_numbers(x >= y, x))
both = joint(lambda x, y: as_numbers((x != 0.0) & (y != 0.0), x))
either = joint(lambda x, y: as_numbers((x != 0.0) | (y != 0.0), x))
neither = joint(lambda x: as_numbers(x == 0.0, x))


@joint
def apply_truth(op, d, a, b, c, n):  # type: ignore[no-untyped-def]
    """Apply an operation whose result is true or false."""
    if op == codes.EQ:
        two(equal, d, a, b, n)
    elif op == codes.NE:
        two(unequal, d, a, b, n)
    elif op == codes.LT:
        two(less, d, a, b, n)
    elif op == codes.LE:
        two(less_equal, d, a, b, n)
    elif op == codes.GT:
        two(greater, d, a, b, n)
    elif op == codes.GE:
        two(greater_equal, d, a, b, n)
    elif op == codes.AND:
        two(both, d, a, b, n)
    elif op == codes.OR:
        two(either, d, a, b, n)
    elif op == codes.NOT:
        one(neither, d, a, n)


@joint
def apply_function(op, d, a, b, c, n):  # type: ignore[no-untyped-def]
    """Apply an operation that takes more than one instruction of the processor."""
    if op == codes.EXP:
        one(exponential, d, a, n)
    elif op == codes.LOG:
        one(logarithm, d, a, n)
    elif op == codes.ERF:
        one(error_function, d, a, n)
    elif op == codes.TANH:
        one(hyperbolic_tangent, d, a, n)
    elif op == codes.SIGMOID:
        one(logistic, d, a, n)
    elif op == codes.SQRT:
        one(root, d, a, n)
    elif op == codes.RSQRT:
        one(reciprocal_root, d, a, n)
    elif op == codes.RECIP:
        one(reciprocal, d, a, n)
    elif op == codes.EXPM1:
        one(exponential_less_one, d, a, n)
    elif op == codes.LOG1P:
        one(logarithm_of_more, d, a, n)
    elif op == codes.SIN:
        one(sine_of, d, a, n)
    elif op == codes.COS:
        one(cosine_of, d, a, n)
    elif op == codes.POW:
        two(power_of, d, a, b, n)
    elif op == codes.CDF:
        two(below, d, a, b, n)
    else:
        apply_truth(op, d, a, b, c, n)


@compiled
def apply(op, d, a, b, c, n):  # type: ignore[no-untyped-def]
    """Apply an operation to n numbers. d may be a, b or c."""
    if op == codes.ADD:
        two(add, d, a, b, n)
    elif op == codes.SUB:
        two(subtract, d, a, b, n)
    elif op == codes.MUL:
        two(multiply, d, a, b, n)
    elif op == codes.DIV:
        two(divide, d, a, b, n)
    elif op == codes.MAXI:
        two(larger, d, a, b, n)
    elif op == codes.MINI:
        two(smaller, d, a, b, n)
    elif op == codes.MULADD:
        three(multiply_and_add, d, a, b, c, n)
    elif op == codes.MULSUB:
        three(subtract_what_is_multiplied, d, a, b, c, n)
    elif op == codes.MULMUL:
        three(multiply_three, d, a, b, c, n)
    elif op == codes.SUBMUL:
        three(subtract_and_multiply, d, a, b, c, n)
    elif op == codes.NEG:
        one(negative, d, a, n)
    elif op == codes.COPY:
        one(same, d, a, n)
    elif op == codes.ABS:
        one(magnitude, d, a, n)
    elif op == codes.SIGN:
        one(sign, d, a, n)
    elif op == codes.FLOOR:
        one(whole_part, d, a, n)
    elif op == codes.WHERE:
        three(choose, d, a, b, c, n)
    else:
        apply_function(op, d, a, b, c, n)
