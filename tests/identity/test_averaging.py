"""Guards the closed form of influence at birth: against products of matrices, a sum by hand, and a network whose layers are random."""

import itertools

import numpy as np
import pytest

from rankfall.identity.influence.measure import average_uniformly, continuum, exact, in_squares

CASES = [(2, 1, 0.3), (7, 3, 1.0), (64, 24, 0.1), (64, 24, 0.5), (200, 12, 0.9)]


@pytest.mark.parametrize(("length", "depth", "alpha"), CASES)
def test_closed_form_is_the_product_of_averages(length: int, depth: int, alpha: float) -> None:
    average = np.tril(np.ones((length, length))) / np.arange(1, length + 1)[:, None]
    row = np.linalg.matrix_power((1 - alpha) * np.eye(length) + alpha * average, depth)[-1]
    assert np.abs(average_uniformly(length, depth, alpha) - row).max() < 1e-14
    assert np.abs(exact(length, depth, alpha) - row).max() < 1e-12
    for form in (exact, continuum, in_squares):
        assert form(length, depth, alpha).sum() == pytest.approx(1.0, abs=1e-12)


def test_density_is_the_limit() -> None:
    """The distance of n equal parts of the density from the exact weights falls with n."""
    far = [np.abs(continuum(n, 12, 0.3) - exact(n, 12, 0.3)).sum() / 2 for n in (16, 64, 256, 1024)]
    assert all(later < 0.7 * before for before, later in itertools.pairwise(far))
    assert far[3] == pytest.approx(far[2] / 2, rel=0.02)
    x = (np.arange(1000) + 0.5) / 1000  # k = 2 by hand: the density is 2 a (1 - a) + a^2 ln 1/x
    by_hand = (2 * 0.4 * 0.6 + 0.4**2 * np.log(1 / x)) / 1000
    assert np.abs(continuum(1000, 2, 0.4)[100:-1] - by_hand[100:-1]).max() < 1e-9


def test_random_maps_add_in_squares() -> None:
    """The mean squared block of random linear layers, by brute force over draws of their maps."""
    length, depth, alpha, width, draws = 6, 4, 0.4, 8, 400
    rng = np.random.default_rng(0)
    average = np.tril(np.ones((length, length))) / np.arange(1, length + 1)[:, None]
    squares = np.zeros(length)
    for _ in range(draws):
        blocks = np.einsum("ji,ab->jiab", np.eye(length), np.eye(width))
        for _ in range(depth):
            value = rng.normal(size=(width, width)) / np.sqrt(width)
            mixed = np.einsum("jk,kiab,bc->jiac", average, blocks, value)
            blocks = (1 - alpha) * blocks + alpha * mixed
        squares += (blocks[-1] ** 2).sum((1, 2)) / draws
    found = np.sqrt(squares) / np.sqrt(squares).sum()
    assert np.abs(found / in_squares(length, depth, alpha) - 1).max() < 0.03
