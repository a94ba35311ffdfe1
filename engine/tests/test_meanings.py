"""Guards that operations mean what PyTorch says at zeros, infinities, NaN, subnormals, and whole numbers, in both number formats."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from thousandfold.optimizers import SGD
from thousandfold.servers import ProgramServer
from thousandfold.stack import Stack

VALUES = [
    *(0.0, -0.0, math.inf, -math.inf, math.nan, 1e-40, -1e-40, 1e30, -1e30, 1e-30, -1e-30),
    *(1.0, -1.0, 2.0, -2.0, 3.0, 5.0, -7.0, 10.0, 100.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.25, 0.1),
    *(2.0**10, 2.0**20, 2.0**-10, 2.0**-126, 2.0**100, 1000.0, 1e10, 16777216.0, -16777215.0, 41.0),
]
ORDERED = [3.0, math.nan, -math.inf, 0.0, -0.0, 1e30, math.inf, 3.0, -1e-40, math.nan, -7.0, math.inf]

POINTWISE: dict[str, Callable[[Tensor], Tensor]] = {
    name: getattr(torch, name)
    for name in (
        *("neg", "exp", "log", "erf", "tanh", "sqrt", "rsqrt", "sigmoid", "abs", "expm1", "log1p", "floor", "sign"),
        *("reciprocal", "exp2", "log2", "log10", "ceil", "trunc", "round", "relu", "square", "sgn", "frac"),
    )
}
POINTWISE |= {
    name: getattr(F, name)
    for name in (
        *("gelu", "silu", "elu", "selu", "softplus", "hardtanh", "hardswish", "hardsigmoid", "leaky_relu"),
        *("hardshrink", "softshrink", "logsigmoid", "mish", "relu6", "softsign", "tanhshrink"),
    )
}
POINTWISE |= {
    name: lambda x, name=name: getattr(x, name)().to(x.dtype) for name in ("isnan", "isinf", "logical_not", "isfinite")
}
POINTWISE |= {f"pow {e}": lambda x, e=e: x**e for e in (0, 1, 2, 3, 4, -1, -2, 0.5, -0.5, 1.5, -1.5)}
POINTWISE |= {
    "clamp": lambda x: x.clamp(-1.5, 2.0),
    "nan_to_num": lambda x: x.nan_to_num(),
    "half to even": lambda x: torch.round(x * 0.5),
}

TWO: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    name: getattr(torch, name) for name in ("add", "sub", "mul", "div", "maximum", "minimum")
}
TWO |= {
    name: lambda x, y, name=name: getattr(torch, name)(x, y).to(x.dtype)
    for name in ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor")
}

ORDERS: dict[str, Callable[[Tensor], Tensor]] = {
    "max": lambda x: x.max(0, keepdim=True).values,
    "min": lambda x: x.min(0, keepdim=True).values,
    "argmax": lambda x: x.argmax(0, keepdim=True).to(x.dtype),
    "argmin": lambda x: x.argmin(0, keepdim=True).to(x.dtype),
    "cumsum": lambda x: x.cumsum(0),
    "softmax": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(0),
    "logsumexp": lambda x: x.logsumexp(0, keepdim=True),
}
EXACT = (
    *("floor", "sign", "ceil", "trunc", "round", "sgn", "abs", "neg", "half to even", "isnan", "isinf", "relu"),
    *("maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge"),
)  # fmt: skip
# Differences of nearly equal numbers. PyTorch's gelu is 0 at -7, where 1 + erf is.
CANCEL = ("gelu", "tanhshrink")


class Multiplied(nn.Module):
    """Has weights of which the gradient is what an operation returns."""

    def __init__(self, size: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(size, dtype=dtype))


def served(function: Callable[..., Tensor], *given: Tensor) -> Tensor:
    """Return what the engine computes, for tensors of one member."""
    size = function(*given).numel()
    module = Multiplied(size, given[0].dtype)
    stack = Stack([module], [0], SGD(), torch.device("cpu"))
    server = ProgramServer(stack, lambda module, batch: (function(*batch) * module.weight).sum())
    server.passes(stack, tuple(x.unsqueeze(0) for x in given))
    return stack.grads[0].clone()


def check(name: str, function: Callable[..., Tensor], *given: Tensor) -> None:
    found, wanted = served(function, *given), function(*given)
    close = 0.0 if name in EXACT else 32 * torch.finfo(found.dtype).eps
    tiny = torch.finfo(found.dtype).tiny  # subnormal results may be flushed
    away = 0.0 if name in EXACT else torch.finfo(found.dtype).eps if name in CANCEL else tiny
    torch.testing.assert_close(found, wanted, rtol=close, atol=away, equal_nan=True)


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request: Any) -> torch.dtype:
    found: torch.dtype = request.param
    return found


@pytest.mark.parametrize("name", POINTWISE)
def test_functions_of_a_number(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor(VALUES, dtype=dtype)
    # The engine takes x**-1.5 as a root divided by x, which is NaN at -inf, where PyTorch has 0.
    # PyTorch's gelu is NaN at infinities where vectors are 512 bits wide, and 0 or infinite elsewhere.
    x = x[x > -math.inf] if name == "pow -1.5" else x[~x.isinf()] if name == "gelu" else x
    check(name, POINTWISE[name], x)


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_numbers(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor(VALUES, dtype=dtype)
    check(name, TWO[name], x.repeat_interleave(len(x)), x.repeat(len(x)))


@pytest.mark.parametrize("name", ORDERS)
def test_functions_along_an_axis(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor(ORDERED, dtype=dtype)
    for part in (x, x[~x.isnan()], x[x.isfinite()]):
        check(name, ORDERS[name], part)


def test_powers_have_whole_logarithms(dtype: torch.dtype) -> None:
    n = torch.arange(-100, 100, dtype=dtype)
    assert torch.equal(served(torch.exp2, n), torch.exp2(n))
    assert torch.equal(served(torch.log2, torch.exp2(n)), n)
    tens = torch.arange(-30, 31, dtype=dtype)
    powers = torch.tensor([10.0**k for k in range(-30, 31)], dtype=dtype)
    assert torch.equal(served(torch.log10, powers), tens)


def test_means_of_ones_are_one(dtype: torch.dtype) -> None:
    for n in (*range(1, 13), 41, 47, 55, 61, 82, 97, 107):
        ones = torch.ones(n, dtype=dtype)
        assert torch.equal(served(lambda x: x.mean(0, keepdim=True), ones), ones[:1])
        # Sums of small whole numbers are exact in any order, and so equal PyTorch's mean to the bit.
        whole = torch.arange(n, dtype=dtype) ** 2 - 3
        for function in (lambda x: x.mean(0, keepdim=True), lambda x: x.view(1, -1).mean(1)):
            assert torch.equal(served(function, whole), function(whole))
