"""Labels beside points do not overlap, and move no further than they must."""

import itertools

from rankfall.report.spread import spread
from rankfall.streams import stream


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
