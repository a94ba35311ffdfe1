"""How far the machine's functions are from what they stand for: two units in the last place of floats, four of doubles."""

from typing import Any

import mpmath
import numpy as np
import pytest
from instructions import X, Y, Z, block, run

from thousandfold import codes

COUNT = 400
# Function, and where floats and doubles are tried.
FUNCTIONS: dict[str, tuple[Any, tuple[float, float], tuple[float, float]]] = {
    "EXP": (mpmath.exp, (-87, 88), (-708, 709)),
    "EXPM1": (mpmath.expm1, (-100, 88), (-740, 709)),
    "LOG": (mpmath.log, (1e-44, 1e30), (1e-320, 1e300)),
    "LOG1P": (mpmath.log1p, (-0.9999, 1e6), (-0.9999, 1e6)),
    "TANH": (mpmath.tanh, (-12, 12), (-20, 20)),
    "ERF": (mpmath.erf, (-5, 5), (-7, 7)),
    "SIGMOID": (lambda x: 1 / (1 + mpmath.exp(-x)), (-80, 100), (-700, 100)),
    "RSQRT": (lambda x: 1 / mpmath.sqrt(x), (1e-30, 1e30), (1e-300, 1e300)),
    "SIN": (mpmath.sin, (-50, 50), (-50, 50)),
    "COS": (mpmath.cos, (-50, 50), (-50, 50)),
}


@pytest.fixture(params=["float32", "float64"])
def dtype(request: Any) -> str:
    return str(request.param)


def units(found: np.ndarray, exact: list[Any]) -> float:
    """The largest distance, in units in the last place of the exact number."""
    places = [mpmath.mpf(float(np.spacing(found.dtype.type(abs(float(one)))))) for one in exact]
    return max(float(abs(mpmath.mpf(float(a)) - b) / c) for a, b, c in zip(found, exact, places, strict=True))


@pytest.mark.parametrize("operation", FUNCTIONS)
def test_functions(operation: str, dtype: str) -> None:
    function, of_floats, of_doubles = FUNCTIONS[operation]
    low, high = of_floats if dtype == "float32" else of_doubles
    rng = np.random.default_rng(0)
    if low > 0:
        x = np.concatenate([np.exp(rng.uniform(np.log(low), np.log(high), COUNT)), rng.uniform(0.5, 2, COUNT)])
    else:
        small = np.exp(rng.uniform(-30, 0, COUNT)) * rng.choice([-0.9, 0.9], COUNT)
        x = np.concatenate([rng.uniform(low, high, COUNT), small, rng.uniform(-0.9, 2, COUNT)])
    x = x.astype(dtype)
    found = run(dtype, codes.PW, block(operation, x.size), {X: x, Y: x, Z: x}, x.size)
    with mpmath.workdps(50):
        assert units(found, [function(mpmath.mpf(float(one))) for one in x]) <= (2 if dtype == "float32" else 4)


def test_share_of_the_normal_distribution_below(dtype: str) -> None:
    x = np.random.default_rng(0).uniform(-8, 8, COUNT).astype(dtype)
    with mpmath.workdps(50):
        e = np.array([mpmath.exp(-(mpmath.mpf(float(one)) ** 2) / 2) for one in x]).astype(dtype)
        found = run(dtype, codes.PW, block("CDF", COUNT), {X: x, Y: e, Z: x}, COUNT)
        assert units(found, [mpmath.ncdf(mpmath.mpf(float(one))) for one in x]) <= 4


def test_powers(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, y = np.exp(rng.uniform(-10, 10, COUNT)).astype(dtype), rng.uniform(-4, 4, COUNT).astype(dtype)
    found = run(dtype, codes.PW, block("POW", COUNT), {X: x, Y: y, Z: x}, COUNT)
    with mpmath.workdps(50):
        exact = [mpmath.power(mpmath.mpf(float(a)), mpmath.mpf(float(b))) for a, b in zip(x, y, strict=True)]
        assert units(found, exact) <= 2


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_ends_of_the_scale(dtype: str) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1.0, 2000.0, -2000.0], dtype)
    expected = {"EXP": np.exp, "LOG": np.log, "EXPM1": np.expm1, "LOG1P": np.log1p, "TANH": np.tanh}
    for operation, function in expected.items():
        found = run(dtype, codes.PW, block(operation, x.size), {X: x, Y: x, Z: x}, x.size)
        np.testing.assert_allclose(found, function(x), rtol=8 * np.finfo(dtype).eps)
    a, b = (one.ravel().astype(dtype) for one in np.meshgrid([0, -2, 1, 2, np.nan, np.inf], [0, 3, 2, 0.5, -1, np.inf]))
    found = run(dtype, codes.PW, block("POW", a.size), {X: a, Y: b, Z: a}, a.size)
    np.testing.assert_allclose(found, np.power(a, b), rtol=4 * np.finfo(dtype).eps)
