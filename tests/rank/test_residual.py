"""Check the residual metrics: known answers by hand, brute force for the centres, and the properties that later studies lean on."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.optimize import linprog

from rankfall.rank import residual as res
from rankfall.rank.rounding import second_difference

MATRIX = torch.tensor([[1.0, -2.0, 0.0], [3.0, 4.0, -1.0]], dtype=torch.float64)


def matrices(largest: int = 6) -> st.SearchStrategy[torch.Tensor]:
    shape = npst.array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=largest)
    values = st.floats(-100, 100, allow_subnormal=False).map(lambda v: 0.0 if abs(v) < 1e-6 else v)
    return npst.arrays(np.float64, shape, elements=values).map(torch.from_numpy)


def smallest_ball(x: np.ndarray) -> float:
    """Return the l1 radius by a linear program in c, s and r: the least r with sum_d s_td <= r and |x_td - c_d| <= s_td."""
    tokens, width = x.shape
    count = tokens * width
    about_centre = np.tile(np.eye(width), (tokens, 1))
    distances = [np.hstack([sign * about_centre, -np.eye(count), np.zeros((count, 1))]) for sign in (1, -1)]
    totals = np.hstack([np.zeros((tokens, width)), np.kron(np.eye(tokens), np.ones(width)), -np.ones((tokens, 1))])
    limits = np.concatenate([x.ravel(), -x.ravel(), np.zeros(tokens)])
    bounds = [(None, None)] * width + [(0, None)] * (count + 1)
    cost = np.eye(1, width + count + 1, width + count)[0]
    return float(linprog(cost, A_ub=np.vstack([*distances, totals]), b_ub=limits, bounds=bounds).fun)


@pytest.mark.parametrize(
    ("norm", "value"),
    [("l1", 6.0), ("linf", 8.0), ("composite", 48.0**0.5), ("frobenius", 31.0**0.5)],
)
def test_norms_by_hand(norm, value):
    """l1 is the largest COLUMN sum and linf the largest ROW sum; the composite is the root of their product."""
    assert float(res.matrix_norm(MATRIX, norm)) == pytest.approx(value, rel=1e-15)


def test_relative_residual_by_hand():
    """Mean (2, 1, -.5), rest +-(1, 3, .5): column sums 2, 6, 1, row sums 4.5. Medians minimise l1."""
    expected = (6 * 4.5) ** 0.5 / 48**0.5
    assert float(res.relative_residual(MATRIX, "composite", "mean")) == pytest.approx(expected, rel=1e-14)
    x = MATRIX[[0, 1, 0, 0, 1]]
    assert torch.equal(res.residual(x, "best", "l1"), x - MATRIX[0])


def test_equal_rows_have_no_residual_at_all():
    """0.1 + 0.2 has no exact mean of three; the shift by the first token makes the answer an exact zero, not rounding noise."""
    x = torch.full((3, 5), 0.1 + 0.2, dtype=torch.float64)
    for centre in res.CENTRES:
        assert torch.equal(res.residual(x, centre), torch.zeros_like(x))


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
@pytest.mark.parametrize("norm", ["composite", "l1", "linf", "frobenius"])
def test_states_that_are_no_numbers_are_not_collapsed(norm, wrong):
    x = torch.eye(3, dtype=torch.float64)
    x[1, 2] = wrong
    assert math.isnan(res.relative_residual(x, norm))


def test_a_zero_matrix_has_no_ratio():
    """It may be all that underflow has left; equal rows of an ordinary size have the residual 0."""
    x = torch.zeros(4, 3, dtype=torch.float64)
    assert all(
        math.isnan(ratio(x)) for ratio in (res.relative_residual, res.sigma_ratio, lambda x: res.stable_ranks(x)[0])
    )
    assert float(res.relative_residual(torch.ones(4, 3, dtype=torch.float64))) == 0


@given(matrices())
@settings(max_examples=60, deadline=None)
def test_best_centres_against_linear_programs(x):
    """The certificate of linf brackets the optimum of the linear program and is tight."""
    size = float(res.matrix_norm(x, "linf"))
    best = smallest_ball(x.numpy())
    centre, lower = res.row_centre(x)
    upper = float(res.matrix_norm(x - centre, "linf"))
    assert float(lower) <= best * (1 + 1e-7) + 1e-7 * size
    assert best * (1 - 1e-7) - 1e-7 * size <= upper <= best * 1.03 + 1e-7 * size


def test_composite_centre_is_close_to_a_brute_force_search():
    """Two columns, a grid of 401 x 401 centres: descent ends within 1 % of the best grid point, and above the bound."""
    torch.manual_seed(3)
    for _ in range(4):
        x = torch.randn(5, 2, dtype=torch.float64) ** 3
        axes = [torch.linspace(float(x[:, d].min()), float(x[:, d].max()), 401, dtype=torch.float64) for d in (0, 1)]
        grid = torch.cartesian_prod(*axes)
        brute = float(res.matrix_norm(x - grid[:, None, :], "composite").min())
        centre, lower = res.composite_centre(x)
        value = float(res.matrix_norm(x - centre, "composite"))
        assert value <= brute * 1.01
        assert float(lower) <= brute * (1 + 1e-9)


def test_floor_follows_the_dtype_of_the_forward_pass():
    """2e-7 is where the published float32 curves end; the same number in float64 is a measurement."""
    value = torch.tensor([2e-7])
    assert bool(res.at_floor(value, torch.float32))
    assert not bool(res.at_floor(value, torch.float64))
    assert bool(res.at_floor(value * 1e-9, torch.float64))


def test_spectrum_by_hand():
    """diag(4, 2, 1): ratio 1/2, stable rank 21/16, rank 3, and rank 2 once the smallest is below float32 noise."""
    x = torch.diag(torch.tensor([4.0, 2.0, 1.0], dtype=torch.float64))
    assert float(res.sigma_ratio(x)) == pytest.approx(0.5)
    assert float(res.stable_ranks(x)[0]) == pytest.approx(21 / 16)
    assert int(res.numerical_rank(x)) == 3
    x[2, 2] = 1e-7
    assert int(res.numerical_rank(x)) == 3
    assert int(res.numerical_rank(x, torch.float32)) == 2


@pytest.mark.parametrize("width", [1, 2, 3])
def test_what_passes_differ_by_beside_the_first_direction(width: int) -> None:
    """Of a difference of the columns (a, c, 0) and (b, d, 0) only d is beside both first directions of a diagonal matrix."""
    x = torch.zeros(4, width, dtype=torch.float64)
    x[range(width), range(width)] = torch.tensor([8.0, 1e-3, 1e-4], dtype=torch.float64)[:width]
    other = x.clone()
    other[:2, :2] += torch.tensor([[0.5, 0.25], [0.125, 2e-4]], dtype=torch.float64)[:, :width]
    expected = 0.2 if width > 1 else 0.0
    assert float(second_difference(x, other)) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("norms", [res.NORMS, ("l1",), ("frobenius", "composite"), ("linf", "spectral"), ()])
def test_norms_together_are_those_one_by_one(norms: tuple[str, ...]) -> None:
    x = torch.randn(2, 3, 6, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    together = res.matrix_norms(x, norms)
    assert list(together) == list(norms)
    best = res.best_residuals(x, [norm for norm in norms if norm != "spectral"])
    assert all(torch.equal(rest, res.residual(x, "best", norm)) for norm, rest in best.items())
    assert all(torch.equal(together[norm], res.matrix_norm(x, norm)) for norm in norms)
    with pytest.raises(ValueError, match="unknown norm"):
        res.matrix_norms(x, ("l1", "l3"))
