"""Guards the campaign of random edits itself: a hole in a key is seen."""

import pytest
from findings import Findings
from mutants import Mutant

EDIT = Mutant("nets/masks/causal.py", 7, "Add -> Sub", "")


def units(key: str = "k", digest: str = "d") -> dict[str, dict[str, list[str]]]:
    return {"job": {"train": [key, digest], "data": ["k", "d"]}, "cell": {"one": [key, digest]}}


@pytest.mark.parametrize(
    ("key", "digest", "holes", "for_nothing"),
    [("k", "d", 0, 0), ("k", "other", 2, 0), ("other", "d", 0, 2), ("other", "other", 0, 0), ("k", "broken", 0, 0)],
)
def test_a_hole_is_other_numbers_under_the_same_key(key: str, digest: str, holes: int, for_nothing: int) -> None:
    found = Findings()
    found.add(EDIT, units(), units(key, digest))
    assert (len(found.holes), found.for_nothing) == (holes, for_nothing)
    assert found.changed == (digest == "other")
