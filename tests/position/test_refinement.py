"""Check that colours are those of a second refinement, by tuples and multisets of Python."""

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from rankfall.position.theory import Sight, layers


def numbered(states: Sequence[Hashable]) -> list[int]:
    """Equal states have one number: that of the first."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(state, len(numbers)) for state in states]


def one_layer_more(seen: Sight, states: list[int]) -> list[int]:
    after: list[Hashable] = []
    for i, state in enumerate(states):
        there = np.flatnonzero(seen.visible[i]).tolist()
        offered = {(states[j], int(seen.values[i, j])) for j in there}
        weighed = Counter((states[j], int(seen.values[i, j]), int(seen.scores[i, j])) for j in there)
        after.append((state, next(iter(offered)) if seen.fixed and len(offered) == 1 else frozenset(weighed.items())))
    return numbered(after)


def drawn(rng: np.random.Generator) -> Sight:
    """A mask, labels and starts at random, of which few differ, so that some places stay equal; every place sees one at least."""
    n = int(rng.integers(1, 7))
    visible = (rng.random((n, n)) < rng.choice([0.3, 0.6, 1.0])) | np.eye(n, dtype=bool)[rng.permutation(n)]
    start, scores, values = (
        rng.integers(rng.integers(1, 4), size=shape) * rng.integers(2) for shape in (n, (n, n), (n, n))
    )
    if rng.integers(2):  # many then see equal states alone, more or fewer of them
        alike = visible & (start[rng.integers(n, size=n)][:, None] == start)
        visible = np.where(alike.any(1, keepdims=True), alike, visible)
        values = values if rng.integers(2) else np.full_like(values, rng.integers(4))
    return Sight(start + rng.integers(3), visible, scores, values, bool(rng.integers(2)))


def test_colours_are_those_of_multisets() -> None:
    rng = np.random.default_rng(0)
    split = 0
    for _ in range(400):
        seen = drawn(rng)
        states, found = numbered(seen.start.tolist()), layers(seen, 4)
        for layer in range(5):
            assert numbered(found[min(layer, len(found) - 1)].tolist()) == states
            after = one_layer_more(seen, states)
            assert (len(found) > layer + 1) is (after != states and layer < 4)
            split += after != states
            states = after
    assert split > 200
