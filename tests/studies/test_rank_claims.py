"""Check the closed forms of claims about rank and signal, each by a second way."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from rankfall import components
from rankfall.measure.context import Context
from rankfall.overview.claims import decide
from rankfall.report.claim import claims
from rankfall.report.decision import UNDECIDED
from studies.claims.affine_rank.experiment import count_affine_rank, draw_tokens
from studies.claims.cosine_recursion.names import BOTH_SEE, COSINE
from studies.claims.cosine_recursion.network import states
from studies.claims.cosine_recursion.recursion import Regime, cosines, mlp
from studies.claims.gain_control.experiment import VARIANTS
from studies.claims.gap_gradients.experiment import KINDS, NAME, attention, derivatives, layer_output, scale_and_norm
from studies.claims.lambda_skip.experiment import LAW
from studies.claims.norm_equilibria.experiment import equilibrium, run
from studies.claims.parts import fit_line
from studies.claims.query_gradients import experiment as queries
from studies.claims.query_gradients.experiment import query_gradient
from studies.claims.rules import slopes
from studies.claims.score_scales.limits import (
    cosine_after,
    critical_of_both,
    critical_of_cosines,
    critical_of_noise,
    decay_of_squares,
    squares_of_weights,
)
from studies.claims.stream_products.maps import free, log10_gains, log10_rates, log10_spread, sinkhorn, stochastic
from studies.claims.untrained import linear_map, unit_deviation
from studies.claims.width_collapse.experiment import attend, orthonormal, stable


def test_a_difference_at_its_bound_says_how_many_seeds_it_would_take() -> None:
    """Four seeds at -.07 +- .01: the interval reaches .0184, 1.84 times as far as the bound is, and 4 x 1.84^2 seeds would do."""
    about = {"claim": BOTH_SEE, "quantity": COSINE, "x": 1.0}
    rows = [
        about | {"line": line, "seed": seed, "value": value}
        for seed, off in enumerate((-0.08, -0.08, -0.06, -0.06))
        for line, value in (("beta 3", 0.5 + off), ("recursion, beta 3", 0.5))
    ]
    (claim,) = (claim for claim in claims() if claim.name == BOTH_SEE)
    decision = decide(claim, {"evidence": pd.DataFrame(rows)}.get)
    assert decision is not None and decision.verdict == UNDECIDED
    assert decision.wants == "about 10 seeds for beta 3, whose difference lies 0.01 from the bound"


def test_lines_and_slopes() -> None:
    assert fit_line([1, 2, 3], [5, 7, 9]) == pytest.approx((2, 3))
    rows = pd.DataFrame({"seed": [0, 0, 0, 1, 1], "x": [1.0, 2, 4, 1, 10], "value": [3.0, 12, 48, 1, 0.1]})
    assert slopes(rows, log=True) == pytest.approx([2, -1])


def on_simplex(n: float, rho: float, gamma: float) -> float:
    """Cosine after a layer of tokens sqrt(rho) e_0 + sqrt(1 - rho) e_i: by hand, for any n."""
    own = 1 / (1 + (n - 1) * math.exp(gamma * math.log(n) * (rho - 1)))
    other = (1 - own) / (n - 1)
    # Output i: sqrt(rho) e_0 + sqrt(1 - rho) (own e_i + other sum of the rest).
    square = rho + (1 - rho) * (own**2 + (n - 1) * other**2)
    product = rho + (1 - rho) * (2 * own * other + (n - 2) * other**2)
    return product / square


@pytest.mark.parametrize("rho", [0.2, 0.5, 0.8])
def test_cosine_after_a_layer_at_and_around_the_critical_scale(rho: float) -> None:
    critical = critical_of_cosines(rho)
    for share in (0.5, 1.0, 2.0):
        assert on_simplex(1e60, rho, share * critical) == pytest.approx(cosine_after(rho, share * critical), abs=1e-6)
    # The hand form against matrices.
    n, gamma = 7, 1.3
    x = torch.cat([torch.full((n, 1), rho**0.5), (1 - rho) ** 0.5 * torch.eye(n)], 1).double()
    y = (gamma * math.log(n) * x @ x.T).softmax(-1) @ x
    assert float(torch.nn.functional.cosine_similarity(y[0], y[1], dim=0)) == pytest.approx(on_simplex(n, rho, gamma))


def test_squares_of_weights_are_those_of_a_poisson_dirichlet_law() -> None:
    """Above the critical scale weights of a random energy model are distributed like sticks broken by Beta(1 - m, k m), m = b_c / b."""
    rng = np.random.default_rng(1)
    for rho, share in ((0.0, 1.5), (0.5, 2.5)):
        m = 1 / share
        left, total = np.ones(20000), np.zeros(20000)
        for k in range(1, 60):
            stick = rng.beta(1 - m, k * m, 20000)
            total += (left * stick) ** 2
            left *= 1 - stick
        assert total.mean() == pytest.approx(squares_of_weights(rho, share * critical_of_noise(rho)), abs=0.01)
    assert squares_of_weights(0.0, 1.4) == 0


def test_squares_of_weights_fall_by_the_derived_power() -> None:
    rng = np.random.default_rng(2)
    sizes = np.array([300, 3000, 30000])
    squares = []
    for n in sizes:
        weights = np.exp(0.4 * math.sqrt(math.log(n)) * rng.normal(size=(40, n)))
        squares.append(((weights / weights.sum(1, keepdims=True)) ** 2).sum(1).mean())
    assert np.polyfit(np.log(sizes), np.log(squares), 1)[0] == pytest.approx(decay_of_squares(0.4), abs=0.03)
    edge = math.sqrt(2) / 2  # where another term leads
    assert decay_of_squares(edge - 1e-9) == pytest.approx(decay_of_squares(edge + 1e-9))
    assert decay_of_squares(math.sqrt(2)) == pytest.approx(0)


@pytest.mark.parametrize("b", [0.0, 0.7, 1.2, 1.4, 2.0, 3.0])
def test_boundary_of_mixed_scores_is_the_largest_of_number_and_size(b: float) -> None:
    """n^(1 - y^2 / 2) of n normal numbers are near y sqrt(log n), none beyond y = sqrt(2): the others weigh n^max(1 - y^2 / 2 + b y)."""
    y = np.linspace(0, math.sqrt(2), 200001)
    others = (1 - y**2 / 2 + b * y).max()
    for rho in (0.0, 0.5):
        assert critical_of_both(rho, b) * (1 - rho) == pytest.approx(others, abs=1e-8)


def test_recursion_has_the_published_points_and_the_kernel_of_relu() -> None:
    """Points read off the source's pictures of its own recursion, started at .025."""
    weak, strong = (cosines(0.025, 50, Regime(beta)) for beta in (0.5, 3.0))
    assert [weak[layer] for layer in (10, 20, 30)] == pytest.approx([0.26, 0.709, 0.94], abs=0.015)
    assert [strong[layer] for layer in (10, 20, 30, 40, 50)] == pytest.approx(
        [0.146, 0.363, 0.675, 0.925, 0.987], abs=0.01
    )
    rng = np.random.default_rng(3)
    rho, regime = 0.4, Regime(1.0, weight=0.7, bias=0.1)
    a, b = rng.normal(size=(2, 10**6))
    size, product = 0.7 + 0.1, 0.7 * rho + 0.1
    c = product / size
    u, v = size**0.5 * a, size**0.5 * (c * a + math.sqrt(1 - c * c) * b)
    q, p = mlp(rho, regime)
    assert q == pytest.approx(0.7 * (np.maximum(u, 0) ** 2).mean() + 0.1, rel=0.01)
    assert p == pytest.approx(0.7 * (np.maximum(u, 0) * np.maximum(v, 0)).mean() + 0.1, rel=0.01)


@pytest.mark.parametrize(("layer", "cosines_of"), [(10, (1.0, 0.89, 0.24, 0.24)), (100, (1.0, 0.99, 0.53, 0.41))])
def test_recursion_of_stabilisers_has_the_published_points(layer: int, cosines_of: tuple[float, ...]) -> None:
    for name, published in zip(VARIANTS, cosines_of, strict=False):
        assert cosines(0.2, 100, VARIANTS[name])[layer] == pytest.approx(published, abs=0.015), name


def test_networks_of_the_recursion_draw_a_layer_by_its_name() -> None:
    x = unit_deviation(torch.randn(6, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
    short, long = (list(states(x, depth, Regime(1.0), 0, "test", causal=True)) for depth in (2, 3))
    assert torch.equal(short[2], long[2])
    other = x.clone()
    other[-1] = -x[-1]  # later tokens are not seen
    assert torch.allclose(list(states(other, 2, Regime(1.0), 0, "test", causal=True))[2][:-1], short[2][:-1])


def test_products_of_streams_are_those_of_matrices() -> None:
    maps = [stochastic(0, layer, 4, 1.0, 200) for layer in range(4)]
    product = maps[3] @ maps[2] @ maps[1] @ maps[0]
    assert torch.allclose(product.sum(0), torch.ones(4).double())
    apart = (product - product.mean(0)).norm() / (torch.eye(4).double() - 0.25).norm()
    assert log10_spread(maps)[-1] == pytest.approx(float(apart.log10()), abs=1e-9)
    loose = [free(0, layer, 4, 0.3) for layer in range(3)]
    product = loose[2] @ loose[1] @ loose[0]
    rows, columns = product.abs().sum(1).max(), product.abs().sum(0).max()
    assert 10 ** log10_gains(loose)[-1] == pytest.approx(float(max(rows, columns)))
    assert torch.allclose(sinkhorn(torch.randn(3, 3, dtype=torch.float64), 1).sum(1), torch.ones(3).double())


@pytest.mark.parametrize("kind", ["A", "A + skip", "A + skip, doubled as published", "A + skip + norm"])
def test_derivatives_by_a_value_map_are_those_of_autograd(kind: str) -> None:
    tokens, depth = 4, 2
    x = orthonormal(0, tokens) * (tokens**0.5 if KINDS[kind][3] else 1.0)
    weights = [attention(kind, 0, layer, tokens) for layer in (1, 2)]
    first, second = (linear_map(0, tokens, tokens, 1.0, f"{NAME} value {layer}") for layer in (1, 2))

    def network(w: torch.Tensor) -> torch.Tensor:
        inner = scale_and_norm(kind, layer_output(kind, weights[0], w, x))
        return scale_and_norm(kind, layer_output(kind, weights[1], second, inner))

    exact = torch.autograd.functional.jacobian(network, first).norm()
    assert derivatives(kind, 0, depth, tokens, 20000)[-1] == pytest.approx(float(exact), rel=0.03)


def test_query_gradient_is_a_difference_quotient_of_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the loss with a query map that is moved a little in one entry."""
    gradient = query_gradient(0, 12, 4, 5, 1.5)
    losses, step = [], 1e-5
    plain_map, plain_loss = queries.linear_map, torch.nn.functional.cross_entropy
    for move in (step, -step):

        def moved_map(
            seed: int, rows: int, columns: int, variance: float, name: str, move: float = move
        ) -> torch.Tensor:
            weights = plain_map(seed, rows, columns, variance, name)
            weights[1, 2] += move * name.endswith("query")
            return weights

        def recorded_loss(*given: Any) -> torch.Tensor:
            losses.append(plain_loss(*given).item())
            return plain_loss(*given)

        monkeypatch.setattr(queries, "linear_map", moved_map)
        monkeypatch.setattr(torch.nn.functional, "cross_entropy", recorded_loss)
        query_gradient(0, 12, 4, 5, 1.5)
    assert (losses[0] - losses[1]) / (2 * step) == pytest.approx(float(gradient[1, 2]), rel=1e-5, abs=1e-9)


def test_usual_stable_rank_after_a_layer_of_independent_scores_is_two() -> None:
    """Weights of variance (e^(log 2) - 1) / T^2 about 1 / T leave, of T rows of length one, |rest|^2 = 1 beside |common|^2 = 1."""
    layers = (attend(orthonormal(seed, 256), seed, 1, "independent scores", "every token", False) for seed in range(4))
    assert np.mean([stable(torch.linalg.svdvals(x), 2) for x in layers]) == pytest.approx(2, abs=0.1)
    assert stable(torch.tensor([2.0, 1.0]), 4) == pytest.approx(1 + 1 / 16)


def test_constructed_equilibria_stay_and_have_their_rank() -> None:
    basis = torch.linalg.qr(torch.randn(5, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64))[0]
    for rank in range(1, 6):
        x, value = equilibrium(basis, 5, rank)
        assert torch.linalg.matrix_rank(x) == rank
        assert torch.allclose(run(x, value, 1), x, atol=1e-12)


def test_affine_rank_by_hand() -> None:
    on_a_line = torch.tensor([[1.0, 0.0, 2.0], [2.0, 0.0, 4.0], [4.0, 0.0, 8.0]]).double()
    assert count_affine_rank(on_a_line) == 1
    assert count_affine_rank(unit_deviation(on_a_line) + 0 * on_a_line) <= 1
    for through in (True, False):
        assert [count_affine_rank(draw_tokens(0, 7, 9, rank, through)) for rank in (1, 3, 6)] == [1, 3, 6]


def test_what_a_skip_connection_loses_by_averaging_is_the_closed_form() -> None:
    rows = pd.DataFrame(components.load("measure", "lambda_skip")(Context(), seeds=1, depth=8, tokens=5, width=8))
    closed_form = rows[rows.line == LAW].set_index("x").value
    generator = torch.Generator().manual_seed(0)
    width, tokens, strength = 512, 64, 2.0
    common, rest = (torch.randn(count, width, generator=generator, dtype=torch.float64) for count in (1, tokens))
    w = torch.randn(width, width, generator=generator, dtype=torch.float64) * width**-0.5
    x = common + 1e-3 * (rest - rest.mean(0))
    y = strength * x + x.mean(0, keepdim=True) @ w
    after = (y - y.mean(0)).norm() / y.norm() / ((x - x.mean(0)).norm() / x.norm())
    assert float(after.log10()) == pytest.approx(closed_form[strength], abs=0.02)


def test_products_of_free_maps_grow_by_their_lyapunov_exponent() -> None:
    """N is as likely as N turned, so a map lengthens any vector by |(1 + d g, d h)|, g and the three h normal: a mean in closed form."""
    g, weights = np.polynomial.hermite_e.hermegauss(60)
    r, heavier = np.polynomial.laguerre.laggauss(60)  # |h|^2 / 2 has the density 2 sqrt(r / pi) e^-r
    for d, rate in zip((0.1, 0.3), log10_rates([0], 20_000, 4, (0.1, 0.3))[0], strict=True):
        lengths = (1 + d * g[:, None]) ** 2 + 2 * d**2 * r
        both = weights[:, None] / math.sqrt(2 * math.pi) * heavier * 2 * np.sqrt(r / math.pi)
        expected, error = float((both * np.log10(lengths) / 2).sum()), d / math.sqrt(20_000) / math.log(10)
        assert rate == pytest.approx(expected, abs=3 * error)
