"""Random programs over the served operations, on hard numbers and views, against PyTorch in both formats. `CORPUS` keeps the seeds that
ever differed."""

import random
from collections.abc import Callable

import pytest
import torch
from test_meanings import served
from torch import Tensor

CORPUS = [792]  # tanh differs by a last bit, and is compared with its input
# Ties and subnormals; infinities and NaN are in test_meanings.py.
HARD = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -2.5, 3.0, 1e-30, 1e-40, 41.0]
SIZES = (1, 2, 3, 7)

UNARY: list[Callable[[Tensor], Tensor]] = [
    *(torch.neg, torch.abs, torch.sign, torch.floor, torch.sigmoid, torch.tanh, torch.erf, torch.relu, torch.square),
    *(torch.sin, torch.cos, lambda x: x.clamp(-1, 2), lambda x: x.exp().log1p(), lambda x: (x.abs() + 1).sqrt()),
    *(lambda x: x.softmax(-1), lambda x: x.cumsum(0), lambda x: x - x.mean(-1, keepdim=True), lambda x: x.flip(0)),
    *(lambda x: x + x.amax(0, keepdim=True), lambda x: x.var(-1, keepdim=True, correction=0) + x),
    *(lambda x: x.transpose(0, 1).contiguous().transpose(0, 1), lambda x: torch.where(x > 0, x, x * 0.1)),
    *(lambda x: torch.cat([x[:, 1:], x[:, :1]], 1), lambda x: x.transpose(0, 1).flatten().view(x.T.shape).T),
]
BINARY: list[Callable[[Tensor, Tensor], Tensor]] = [
    *(torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum, lambda x, y: x / (y.abs() + 1)),
    *(lambda x, y: torch.where(x < y, x, y * 0.5), lambda x, y: (x == y).to(x.dtype) + x, lambda x, y: x @ (y.T @ x)),
    lambda x, y: (x[:, :1] * y).expand(x.shape),
]


def program(seed: int) -> tuple[Callable[..., Tensor], tuple[int, int]]:
    """Return a random function of two matrices, and their shape."""
    rng = random.Random(seed)
    steps = [(rng.random() < 0.6, rng.randrange(1000), rng.randrange(1000)) for _ in range(rng.randrange(2, 8))]

    def run(x: Tensor, y: Tensor, nudge: float = 0.0) -> Tensor:
        """`nudge` moves each result by a share of itself, as another rounding would."""
        held = [x, y]
        for unary, which, of in steps:
            a, b = held[of % len(held)], held[-1]
            found = UNARY[which % len(UNARY)](a) if unary else BINARY[which % len(BINARY)](a, b)
            found = found * (1 + nudge) if nudge else found
            held.append(found.clamp(-1e3, 1e3))  # so that rounding stays comparable
        return held[-1].flatten()

    return run, (rng.choice(SIZES), rng.choice(SIZES))


def check(seed: int) -> None:
    function, shape = program(seed)
    rng = random.Random(seed + 1)
    values = [[rng.choice(HARD) if rng.random() < 0.5 else rng.gauss(0, 1) for _ in range(49)] for _ in range(2)]
    for dtype in (torch.float32, torch.float64):
        given = [torch.tensor(one, dtype=dtype)[: shape[0] * shape[1]].view(shape) for one in values]
        exact = function(*(x.double() for x in given))
        own, ours = function(*given).double(), served(function, *given).double()
        # A step of a function may go either way by a last bit: then PyTorch is as far from doubles as the engine.
        bound = 16 * (own - exact).abs().amax() + 256 * torch.finfo(dtype).eps * (1 + exact.abs().amax())
        if not ((ours - own).abs() <= bound).all():
            last_bits = [k * torch.finfo(dtype).eps for k in (-2, -1, 1, 2)]
            beside = [function(*(x * (1 + bit) for x in given)).double() for bit in last_bits]
            beside += [function(*given, bit).double() for bit in last_bits]
            jumps = torch.stack([(one - own).abs() for one in beside]).amax()
            assert ((ours - own).abs() <= bound + 4 * jumps).all(), f"seed {seed} in {dtype}"


@pytest.mark.parametrize("seed", CORPUS)
def test_what_once_differed(seed: int) -> None:
    check(seed)


def test_random_programs() -> None:
    for seed in range(60):
        check(seed)


@pytest.mark.slow
def test_many_random_programs() -> None:
    for seed in range(60, 1000):
        check(seed)
