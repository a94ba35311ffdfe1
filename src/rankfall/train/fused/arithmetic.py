"""What acts on each number, written so that loops over it become vector code: the exponential, and the normal distribution for gelu."""

import math

import numpy as np

from rankfall.train.fused.compiled import elementwise, exact

f32, u64 = np.float32, np.uint64
LOG2_E, LN2_HIGH, LN2_LOW = f32(1 / math.log(2)), f32(0.693359375), f32(math.log(2) - 0.693359375)
ROUND = f32(1.5 * 2**23)  # adding it rounds to an integer, which then is in the lowest bits
SMALLEST = f32(-87.0)
TAYLOR = tuple(f32(1 / math.factorial(n)) for n in range(2, 8))
ROOT_HALF, DENSITY = f32(math.sqrt(0.5)), f32(1 / math.sqrt(2 * math.pi))
# Abramowitz and Stegun 7.1.26: erf(x) = 1 - exp(-x^2) (a_1 t + ... + a_5 t^5), t = 1 / (1 + p x); at most 1.5e-7 away for x >= 0.
ERF_P = f32(0.3275911)
ERF_A = tuple(f32(a) for a in (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429))


@exact
def exponential(x):  # type: ignore[no-untyped-def]
    """e^x for x <= 0, 2^n e^r with |r| <= ln(2) / 2; zero below e^-87, and NaN stays NaN."""
    shifted = x * LOG2_E + ROUND
    whole = shifted - ROUND
    r = x - whole * LN2_HIGH - whole * LN2_LOW
    p = TAYLOR[5]
    p = p * r + TAYLOR[4]
    p = p * r + TAYLOR[3]
    p = p * r + TAYLOR[2]
    p = p * r + TAYLOR[1]
    p = p * r + TAYLOR[0]
    p = p * r * r + r + f32(1)
    bits = np.int32((np.int32(np.float32(shifted).view(np.int32)) + np.int32(127)) << np.int32(23))
    power = np.int32(bits).view(np.float32)  # 2^n
    return f32(0) if x < SMALLEST else p * power


@exact
def normal(x):  # type: ignore[no-untyped-def]
    """The normal distribution's function at x, and e^(-x^2 / 2)."""
    e = exponential(f32(-0.5) * x * x)
    t = f32(1) / (f32(1) + ERF_P * ROOT_HALF * abs(x))
    tail = f32(0.5) * e * t * (ERF_A[0] + t * (ERF_A[1] + t * (ERF_A[2] + t * (ERF_A[3] + t * ERF_A[4]))))
    return (tail if x < 0 else f32(1) - tail), e


@elementwise
def add_row(x, into):  # type: ignore[no-untyped-def]
    for c in range(into.shape[0]):
        into[c] += x[c]


@elementwise
def gelu(h, a):  # type: ignore[no-untyped-def]
    """a = gelu(h); in h is left its slope at h, which backward needs and which has the exponential in common with it."""
    for i in range(h.shape[0]):
        for r in range(h.shape[1]):
            x = h[i, r]
            share, e = normal(x)
            a[i, r] = x * share
            h[i, r] = share + x * e * DENSITY


@elementwise
def gelu_inputs(slope, da, dh):  # type: ignore[no-untyped-def]
    for i in range(slope.shape[0]):
        for r in range(slope.shape[1]):
            dh[i, r] = da[i, r] * slope[i, r]


@elementwise
def relu(h, a):  # type: ignore[no-untyped-def]
    """a = relu(h)"""
    for i in range(h.shape[0]):
        for r in range(h.shape[1]):
            x = h[i, r]
            a[i, r] = f32(0) if x <= 0 else x  # NaN stays NaN


@elementwise
def relu_inputs(h, da, dh):  # type: ignore[no-untyped-def]
    for i in range(h.shape[0]):
        for r in range(h.shape[1]):
            dh[i, r] = da[i, r] if h[i, r] > 0 else f32(0)
