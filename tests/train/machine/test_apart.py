"""Guards that operations which are taken apart give what PyTorch's own give, of numbers that are equal, hidden or not finite too."""

import math

import pytest
import torch
from torch import Tensor

from rankfall.streams import stream
from rankfall.train.machine import apart

LEAST = torch.finfo(torch.float32).min
SHAPES = ((1,), (7, 3), (1, 2, 5, 3), (2, 0, 3))


def numbers(shape: tuple[int, ...]) -> Tensor:
    """Half of them equal to others, some hidden by a mask of one kind or another."""
    drawn = stream(0, "numbers", *shape).integers(-4, 5, shape)
    x = torch.from_numpy(drawn).float() / 2
    return x.masked_fill(x == -2, LEAST).masked_fill(x == -1.5, -math.inf).masked_fill(x == 2, math.inf)


@pytest.mark.parametrize("shape", SHAPES)
def test_numbers_are_in_order(shape: tuple[int, ...]) -> None:
    x = numbers(shape)
    for dim in range(-len(shape), len(shape)):
        for descending in (False, True):
            values, places = torch.sort(x, dim=dim, descending=descending, stable=True)
            for found in (apart.order(x, dim, descending), apart.order_stably(x, dim=dim, descending=descending)):
                assert torch.equal(found[0], values) and torch.equal(found[1], places)
            for count in {0, min(2, x.shape[dim]), x.shape[dim]}:
                found = apart.first_in_order(x, count, dim, descending)
                assert torch.equal(found[0], values.narrow(dim, 0, count))
                assert torch.equal(found[1], places.narrow(dim, 0, count))


@pytest.mark.parametrize("kind", [torch.int64, torch.int32, torch.bool])
def test_integers_are_in_order(kind: torch.dtype) -> None:
    x = torch.from_numpy(stream(0, "integers").integers(-3, 4, (5, 9))).to(kind)
    for descending in (False, True):
        assert all(
            map(torch.equal, apart.order(x, -1, descending), torch.sort(x, dim=-1, descending=descending, stable=True))
        )


@pytest.mark.parametrize("shape", SHAPES)
def test_the_largest_the_smallest_and_products_are_those_of_pytorch(shape: tuple[int, ...]) -> None:
    x, near = numbers(shape), numbers(shape).clamp(-3, 3)
    for dim in range(-len(shape), len(shape)):
        for keepdim in (False, True):
            if x.shape[dim]:
                assert all(map(torch.equal, apart.largest(x, dim, keepdim), x.max(dim, keepdim)))
                assert all(map(torch.equal, apart.smallest(x, dim, keepdim), x.min(dim, keepdim)))
                assert torch.equal(apart.place_of_smallest(x, dim, keepdim), x.argmin(dim, keepdim))
            assert torch.allclose(apart.product(near, dim, keepdim), near.prod(dim, keepdim))
        assert torch.allclose(apart.running_product(near, dim), near.cumprod(dim))


def test_halves_are_rounded_to_the_even_number() -> None:
    x = torch.cat(
        [torch.arange(-20, 21) / 4, torch.tensor([math.inf, -math.inf, math.nan, 2.0**23 + 1, -1e30, 0.49999997])]
    )
    assert torch.equal(apart.round_half_to_even(x).nan_to_num(7.0), x.round().nan_to_num(7.0))


@pytest.mark.parametrize("name", ["ceil", "trunc", "exp2", "log2", "log10", "isnan", "isinf", "logical_xor", "hypot"])
def test_what_is_made_of_few_operations(name: str) -> None:
    operation = getattr(torch.ops.aten, name).default
    x = torch.cat([torch.arange(-20, 21) / 4, torch.tensor([math.inf, -math.inf, math.nan, -0.49999997])]).double()
    given = (x, x.flip(0)) if name in ("logical_xor", "hypot") else (x,)
    found, wanted = apart.table()[operation](*given), operation(*given)
    assert found.dtype == wanted.dtype and torch.allclose(found, wanted, rtol=1e-12, equal_nan=True)


@pytest.mark.parametrize("dims", [(0, 1), (-1, 0)])
@pytest.mark.parametrize("offset", [-3, 0, 2, 5])
def test_a_diagonal_and_its_gradient(dims: tuple[int, int], offset: int) -> None:
    x = torch.from_numpy(stream(0, "diagonal").normal(size=(3, 4, 5)))
    x.requires_grad_()
    wanted = x.diagonal(offset, *dims)
    assert torch.equal(apart.diagonal(x.detach(), offset, *dims), wanted)
    gradient = torch.from_numpy(stream(1, "diagonal").normal(size=tuple(wanted.shape)))
    (back,) = torch.autograd.grad(wanted, x, gradient)
    assert torch.equal(apart.diagonal_gradient(gradient, [3, 4, 5], offset, *dims), back)
