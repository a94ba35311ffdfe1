"""Guards the campaigns of random edits themselves: edits are real, a hole in a key is seen, and an edit that lives is named."""

import random
import textwrap

import pytest
from arithmetic import summarise
from edits import draw_edit
from findings import Findings
from mutants import Mutant

EDIT = Mutant("nets/masks/causal.py", 7, "Add -> Sub", "")
SOURCE = textwrap.dedent('''
    """A room."""
    SIZE = 3
    LIMITS = {"height": (9, None)}


    def area(width: float, *, height: float = 2.0) -> float:
        """Return the area of a rectangle."""
        if width < 0:
            raise ValueError(f"{width} is below {0}")
        return width * height
''')


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


def test_edits_are_of_arithmetic_alone_and_one_that_lives_is_named() -> None:
    found = (draw_edit("rank/area.py", SOURCE, random.Random(seed)) for seed in range(200))
    assert {edit.what for edit in found if edit is not None} == {"3 is 4", "Lt turned round", "0 is 1", "Mult -> Div"}
    noticed = {"number": 1, "edit": "a", "line": 1, "end": "noticed by t"}
    same, lives = noticed | {"end": "equivalent"}, noticed | {"end": "LIVES", "edit": "b"}
    text, good = summarise([noticed] * 94 + [same] * 9 + [lives] * 6)
    assert not good and "edit 1 lives: line 1 of b" in text and "94%" in text
    assert summarise([noticed] * 24 + [lives] * 6)[1] and not summarise([noticed] * 23 + [lives] * 7)[1]
    assert not summarise([])[1], "a campaign without an edit has not passed"
