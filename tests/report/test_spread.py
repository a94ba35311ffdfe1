"""Labels beside points do not overlap, and move no further than they must."""

import itertools

import pytest

from rankfall.report.spread import spread
from rankfall.streams import stream


def test_by_hand() -> None:
    assert spread([], 1) == []
    assert spread([3.0, 0.0], 1) == [3.0, 0.0]  # far apart: nothing moves
    assert spread([0.0, 0.0], 1) == [-0.5, 0.5]
    assert spread([0.0, 0.2, 5.0], 1) == pytest.approx([-0.4, 0.6, 5.0])
    assert spread([1.0, 0.0, 1.9], 1) == pytest.approx([29 / 30, -1 / 30, 59 / 30])  # all three push


def test_no_two_are_near_and_no_other_places_are_better() -> None:
    """Against a search over a fine grid of places."""
    rng = stream(0, "labels")
    for _ in range(5):
        wanted = rng.random(3).round(1)
        found = sorted(spread(list(wanted), 0.4))
        assert all(b - a >= 0.4 - 1e-12 for a, b in itertools.pairwise(found))
        cost = sum((a - b) ** 2 for a, b in zip(found, sorted(wanted)))
        grid = [x / 20 for x in range(-20, 41)]
        others = (
            sum((a - b) ** 2 for a, b in zip(places, sorted(wanted)))
            for places in itertools.combinations(grid, 3)
            if all(b - a >= 0.4 - 1e-12 for a, b in itertools.pairwise(places))
        )
        assert cost <= min(others) + 1e-12
