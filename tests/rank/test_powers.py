"""Check that no ratio depends on how near a state is to the ends of its number format: the same bits, or none, at every power of two."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rankfall.rank import residual as res
from rankfall.rank.carried import begin, carry, carry_through, repeat_step
from rankfall.rank.powers import exponent_of, least, length, measurable, reason_of, shift, unit
from rankfall.rank.rounding import relative_difference, second_difference

POWERS = st.sampled_from([-1080, -1022, -970, -500, -333, -1, 1, 2, 333, 500, 970, 1020])


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def nearby(x: Tensor) -> Tensor:
    """The same matrix but for a millionth of its size."""
    return x + shift(drawn(9, *x.shape[-2:]), exponent_of(x)[..., None, None] - 20)


RATIOS: dict[str, Callable[[Tensor], Tensor]] = {
    **{
        f"{norm} {centre}": lambda x, norm=norm, centre=centre: res.relative_residual(x, norm, centre)
        for norm in ("composite", "l1", "linf", "frobenius")
        for centre in res.CENTRES
    },
    "spectral": lambda x: res.relative_residual(x, "spectral"),
    "sigma ratio": res.sigma_ratio,
    "stable rank": lambda x: res.stable_ranks(x)[0],
    "apart": lambda x: relative_difference(x, nearby(x), "composite"),
    "second apart": lambda x: second_difference(x, nearby(x)),
}


@given(st.sampled_from(sorted(RATIOS)), POWERS, st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_ratios_are_the_same_at_every_size_or_none(name: str, power: int, seed: int) -> None:
    x = drawn(seed, 2, 6, 4)
    x[1] = 1.7  # equal rows
    scaled = shift(x, torch.tensor(power))
    known, ratios, again = measurable(scaled), RATIOS[name](x), RATIOS[name](scaled)
    assert bool(known.all()) is (power >= -970)
    assert torch.equal(again[known], ratios[known])
    assert "apart" in name or again[~known].isnan().all()


@pytest.mark.parametrize("power", [-1000, -600, 600, 1000])
def test_norms_neither_vanish_nor_overflow(power: int) -> None:
    x, far = drawn(0, 5, 3), shift(drawn(0, 5, 3), torch.tensor(power))
    for norm in res.NORMS:
        size = math.ldexp(float(res.matrix_norm(x, norm)), power)
        assert float(res.matrix_norm(far, norm)) == pytest.approx(size, rel=1e-14)
    assert torch.equal(length(far), shift(length(x), torch.tensor(power)))
    assert torch.equal(length(x), torch.linalg.vector_norm(x, dim=-1))


def test_reasons_count_samples() -> None:
    x = torch.ones(4, 3, 2, dtype=torch.float64)
    assert reason_of(x) == ""
    x[1] = least(torch.float64) / 2
    assert "float64" in reason_of(x) and "in 1 of 4 samples" in reason_of(x)
    x[2] = math.nan
    assert "not finite" in reason_of(x)
    assert "float32" in reason_of(torch.full((1, 3, 2), 1e-33), torch.float32)


def cubic(x: Tensor) -> Tensor:
    """Homogeneous of degree 3, with rows that stay apart."""
    return x * x.square().mean((-2, -1), keepdim=True)


def with_constant(x: Tensor) -> Tensor:
    return x * 1e-60 + 1e-300 * torch.arange(x.shape[-2], dtype=x.dtype)[:, None]


def test_states_are_carried_through_layers_that_are_homogeneous() -> None:
    """From 1e-3 a cubic map leaves float64 after five layers; the relative residual is that of the start to the last bit."""
    x = drawn(0, 1, 2, 5, 4) * 1e-3
    start = res.relative_residual(unit(x))
    for depth in (1, 4, 5, 12):
        state = list(carry([cubic] * depth, x))[-1]
        assert not state.lost.any()
        assert torch.allclose(res.relative_residual(state.unit), start, rtol=1e-13)
    assert math.isnan(float(state.absolute(torch.ones(1, 2, dtype=torch.float64))[0, 0]))  # 1e-1600000 is no float64
    assert float(res.relative_residual(cubic(cubic(cubic(cubic(cubic(x)))))).isnan().all())  # as it was: 0


@pytest.mark.parametrize(("power", "far"), [(-200, True), (-135, False), (-120, False), (120, False)])
def test_states_whose_sixth_power_leaves_the_range_are_carried(power: int, far: bool) -> None:
    """Where the ordinary quotient is confirmed it is the output; where x^6 vanishes the state is brought back, so that x^6 / x^5 is x."""
    x = 2.0**power * drawn(0, 1, 4, 3)
    (found,), _ = carry_through(lambda x: [x**6 / x**5], begin(x))
    assert not bool(found.lost.any()) and bool((found.exponent != 0).all()) == far
    torch.testing.assert_close(shift(found.unit, found.exponent[..., None, None]), x, rtol=1e-12, atol=0)


def test_what_no_power_of_two_brings_back_is_lost_with_all_that_follows() -> None:
    """Its second term has another degree: at 1e-240 and below nobody can say what the quotient is."""
    states = list(carry([with_constant] * 6 + [lambda x: x * 1e200], drawn(0, 1, 1, 5, 4)))
    assert [bool(state.lost) for state in states] == [False] * 5 + [True] * 3


@pytest.mark.parametrize(("apart", "lost"), [(1e-9, True), (1e-14, False)])
def test_a_layer_must_give_at_its_own_size_what_follows_from_the_other_sizes(apart: float, lost: bool) -> None:
    """One that does something else to small states alone is not carried, however little it is; rounding is no difference."""
    x = 2.0**-500 * drawn(0, 1, 2, 5, 4)
    (found,), _ = carry_through(lambda x: [x * (1 + apart * bool(x.abs().amax() < 2.0**-400))], begin(x))
    assert bool(found.lost.all()) == bool(found.lost.any()) == lost


def test_networks_carry_a_pass_that_rounds_differently_by_the_same_powers() -> None:
    first = begin(shift(drawn(0, 1, 2, 5, 4), torch.tensor(-400)))
    second = begin(first.unit * (1 + 1e-15))
    found, step = carry_through(lambda x: [cubic(x), x], first)
    others = repeat_step(lambda x: [cubic(x), x], second, step, found)
    for one, other in zip(found, others, strict=True):
        assert torch.equal(one.exponent, other.exponent)
        assert torch.allclose(one.unit, other.unit, rtol=1e-13, atol=0)
    assert torch.equal(shift(found[1].unit, found[1].exponent[..., None, None]), first.unit)
