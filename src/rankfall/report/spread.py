"""Positions of labels beside points such that no two overlap."""

from collections.abc import Sequence


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Return positions at least `gap` apart, in the order of the wanted ones, that minimise the sum of squared distances to them. Labels
    that would overlap are moved as a group whose mean stays unchanged."""
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    groups: list[tuple[float, int]] = []  # (mean of wanted position minus rank * gap, count)
    for rank, index in enumerate(order):
        mean, count = wanted[index] - rank * gap, 1
        while groups and groups[-1][0] > mean:
            before, many = groups.pop()
            mean, count = (mean * count + before * many) / (count + many), count + many
        groups.append((mean, count))
    moved = [mean for mean, count in groups for _ in range(count)]
    places = dict(zip(order, (mean + rank * gap for rank, mean in enumerate(moved))))
    return [places[index] for index in range(len(wanted))]
