"""Functions of vectors with errors of a few units in the last place: exponential, logarithm, error function, and functions based on them.

Each step is one rounded operation that all processors have, so all processors give the same bits.
"""

import math
from decimal import Decimal, localcontext

from numba import types
from numba.extending import overload

from thousandfold.kernels.inner import joint
from thousandfold.kernels.lanes import (
    absolute,
    constant,
    exponent_of,
    floor,
    fma,
    half,
    join_lanes,
    one_by_one,
    polynomial,
    power_of_two,
    select,
    times_power_of_two,
    two_by_two,
    whole_shift,
    with_sign,
)

with localcontext() as _context:
    _context.prec = 60
    LN2 = Decimal(2).ln()


def read_numbers(text: str) -> list[float]:
    return [float(number) for number in text.split()]


def parts(number: Decimal, digits: int) -> tuple[float, float]:
    """Split a number into one with few binary digits, whose product with an integer is exact, and the rest."""
    high = float(math.floor(number * 2**digits)) / 2**digits
    return high, float(number - Decimal(high))


(HIGH32, LOW32), (HIGH64, LOW64) = parts(LN2, 12), parts(LN2, 32)
ln2_high, ln2_low = constant(HIGH32, HIGH64), constant(LOW32, LOW64)
# e^r = 1 + r + r^2 (1/2 + r/6 + ...), |r| <= ln(2) / 2; for floats, the terms with the smallest maximum error, 3e-9
REST32 = (0.4999999341, 0.1666652011, 0.04166839421, 0.008368780412, 0.001381446692)
exponential_rest = polynomial(REST32, [1 / math.factorial(n) for n in range(2, 15)])
# ln((1 + s) / (1 - s)) = 2 s + s z (2/3 + 2/5 z + ...), z = s^2 <= 0.0295
logarithm_rest = polynomial(*([2 / (2 * n + 1) for n in range(1, terms)] for terms in (6, 12)))
most, least = constant(89.0, 710.0), constant(-104.0, -746.0)
smallest, raised, raise_ = constant(2.0**-126, 2.0**-1022), constant(24.0, 54.0), constant(2.0**24, 2.0**54)
# erf(x) / x - 1 as a polynomial of x^2 <= 1, and erfc(t) e^(t^2) of (t - 5/2) / (t + 5/2), t <= 6, where 1 - erf is not yet 0,
# interpolated at Chebyshev nodes. Their relative errors are 1e-9 (float) and 1e-19 (double), and 5e-8 and 1e-17.
HEAD32 = (0.1283791658, -0.3761262667, 0.1128359472, -0.02685421201, 0.005189087423, -0.0008016864287, 7.875875063e-5)
HEAD64 = read_numbers("""
    0.1283791670955125738 -0.3761263890318374806 0.1128379167095487867 -0.02686617064507679325 0.005223977624818014467
    -0.0008548326980833789905 0.0001205533111164271092 -0.00001492559526683118157 1.646100048412136803e-6
    -1.635031270105469501e-7 1.465977527404743581e-8 -1.137284885679167367e-9 5.957176147748911404e-11
""")
TAIL32 = read_numbers("""
    0.2108063632 -0.3717367524 0.2517131937 -0.1250320992 0.03992464586 -0.004003411146 -0.00267400592 0.0008831471017
    0.0003406926662
""")
TAIL64 = read_numbers("""
    0.2108063640611435811 -0.3717367339489733857 0.2517131932174490153 -0.1250330523788234096 0.03992253907561889872
    -0.003993701166152115586 -0.002642365965975533023 0.0008759154562008026647 0.000228380420864700281
    -0.0001288772241457514731 -0.00003418281666886619033 0.00001861449717914642662 7.557101817049838972e-6
    -2.295567799098440752e-6 -1.821221020838160365e-6 6.051889930843014677e-8 3.836018053751672638e-7
    1.09699664191491785e-7 -2.490611941458722195e-8 -2.103607018191133373e-8 -3.718934463119765418e-9
""")
head, tail = polynomial(HEAD32, HEAD64), polynomial(TAIL32, TAIL64)

sine, cosine = one_by_one("sin"), one_by_one("cos")  # from the C library, lane by lane, since they are rare
library_power = two_by_two("pow")


@joint
def reduce_argument(x):  # type: ignore[no-untyped-def]
    """Return n + `whole_shift`, n, and e^r - 1, where x = n ln 2 + r."""
    shifted = fma(x, 1 / math.log(2), whole_shift(x))
    n = shifted - whole_shift(x)
    r = fma(n, -ln2_low(x), fma(n, -ln2_high(x), x))
    return shifted, n, fma(exponential_rest(r) * r, r, r)


@joint
def exponential(x):  # type: ignore[no-untyped-def]
    x = select(x > most(x), most(x), x)  # NaN stays NaN
    x = select(x < least(x), least(x), x)
    shifted, _, e = reduce_argument(x)
    return times_power_of_two(e + 1.0, shifted)


@joint
def exponential_less_one(x):  # type: ignore[no-untyped-def]
    below = x < -50.0  # the result is -1
    limited = select(x > most(x), most(x), x)
    _, n, e = reduce_argument(select(below, -50.0, limited))
    power = power_of_two(n - 1.0)
    result = fma(e, power, power - 0.5) * 2.0
    return select(n == 0.0, select(x == 0.0, x, e), result)


@joint
def logarithm_with(x, more):  # type: ignore[no-untyped-def]
    """Return ln(x) + more, for a normal x > 0 and a small `more`."""
    e = exponent_of(x)
    half_e = floor(e * 0.5)
    f = x * power_of_two(-half_e) * power_of_two(half_e - e) - 1.0
    s = f / (f + 2.0)
    z, square = s * s, f * f * 0.5
    remainder = s * (square + z * logarithm_rest(z))
    return fma(e, ln2_high(x), f - (square - (remainder + fma(e, ln2_low(x), more))))


@joint
def special(x, result):  # type: ignore[no-untyped-def]
    """Replace the logarithm of zero, negative numbers, infinity and NaN."""
    result = select(x == 0.0, -math.inf, result)
    result = select(x < 0.0, math.nan, result)
    return select((x == math.inf) | (x != x), x, result)


@joint
def logarithm(x):  # type: ignore[no-untyped-def]
    tiny = x < smallest(x)
    e = select(tiny, -raised(x), 0.0)
    normal = select(tiny, x * raise_(x), x)
    result = logarithm_with(normal, select(tiny, e * ln2_low(x), 0.0))
    return special(x, fma(e, ln2_high(x), result))


@joint
def logarithm_of_more(x):  # type: ignore[no-untyped-def]
    """Return ln(1 + x)."""
    y = x + 1.0
    lost = select(y > 2.0, 1.0 - (y - x), x - (y - 1.0))
    result = special(y, logarithm_with(y, lost / y))
    return select((x == 0.0) | (y == math.inf), x, result)


@joint
def hyperbolic_tangent(x):  # type: ignore[no-untyped-def]
    """Return tanh(x) from e = e^(-2 |x|) - 1: -e / (e + 2) near zero, 1 - 2 (e + 1) / (e + 2) elsewhere."""
    y = absolute(x) * -2.0
    _, n, e = reduce_argument(select(y < -50.0, -50.0, y))
    power = power_of_two(n)
    less_one, itself = fma(e, power, power - 1.0), fma(e, power, power)
    near = y > -1.0
    share = select(near, -less_one, itself * 2.0) / (itself + 1.0)
    return with_sign(select(near, share, 1.0 - share), x)


@joint
def logistic(x):  # type: ignore[no-untyped-def]
    return 1.0 / (exponential(-x) + 1.0)


@joint
def scaled_tail(t):  # type: ignore[no-untyped-def]
    """Return erfc(t) e^(t^2) for t >= 0, and its value at 6 for larger t. NaN stays NaN."""
    t = select(t > 6.0, 6.0, t)
    return tail((t - 2.5) / (t + 2.5))


@joint
def error_function(x):  # type: ignore[no-untyped-def]
    near = fma(head(x * x), x, x)
    t = absolute(x)
    far = with_sign(1.0 - exponential(-(t * t)) * scaled_tail(t), x)
    return select(t < 1.0, near, far)


@joint
def normal_below(x, e):  # type: ignore[no-untyped-def]
    """Return the normal distribution function Phi(x) from x and e = e^(-x^2 / 2), which the gradient of gelu also needs."""
    beyond = e * 0.5 * scaled_tail(absolute(x) * math.sqrt(0.5))  # |x|
    return select(x > 0.0, 1.0 - beyond, beyond)


@joint
def power64(x, y):  # type: ignore[no-untyped-def]
    """Return x^y of doubles with the precision that floats need."""
    whole, odd = floor(y) == y, floor(y * 0.5) * 2.0 != y
    result = exponential(y * logarithm(absolute(x)))
    signed = select(whole & odd, with_sign(result, x), result)
    result = select((x < 0.0) & (x > -math.inf) & (y != floor(y)), math.nan, signed)
    return select((y == 0.0) | (x == 1.0), 1.0, result)


def power(x, y):  # type: ignore[no-untyped-def]
    """Return x^y."""
    raise NotImplementedError


@overload(power, jit_options={"nogil": True, "error_model": "numpy", "forceinline": True})
def power_of_type(x, y):  # type: ignore[no-untyped-def]
    if x.number == types.float64:
        return lambda x, y: library_power(x, y)
    return lambda x, y: join_lanes(power64(half(x, False), half(y, False)), power64(half(x, True), half(y, True)))


@joint
def larger(x, y):  # type: ignore[no-untyped-def]
    """Return the larger number, or NaN if either is NaN."""
    return select((x > y) | (x != x), x, y)


@joint
def smaller(x, y):  # type: ignore[no-untyped-def]
    return select((x < y) | (x != x), x, y)


@joint
def sign(x):  # type: ignore[no-untyped-def]
    """Return 1, -1 or 0. The sign of NaN is 0, as in PyTorch."""
    return select(x > 0.0, 1.0, select(x < 0.0, -1.0, select(x == 0.0, absolute(x), 0.0)))
