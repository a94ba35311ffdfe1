"""Guards the campaign on arithmetic itself: edits change numbers by more than a tolerance, and one that no test notices is seen."""

import ast
import random
import textwrap
from pathlib import Path

import pytest
from arithmetic import draw_edit, find_tests, summarise
from mutants import package_files

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "rankfall"
SOURCE = textwrap.dedent('''
    """A room."""
    SIZE = 3


    def area(width: float, *, height: float = 2.0) -> float:
        """Of a rectangle."""
        if width < 0:
            raise ValueError(f"{width} is below {0}")
        return width * height
''')


def edits(source: str) -> set[str]:
    found = (draw_edit("rank/area.py", source, random.Random(seed)) for seed in range(200))
    return {edit.what for edit in found if edit is not None}


def test_edits_are_of_arithmetic_alone() -> None:
    assert edits(SOURCE) == {"Lt turned round", "0 is 1", "Mult -> Div"}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("x > 1e-6", "1e-06 is 1"),
        ("x.quantile(0.75)", "0.75 is 0.675"),
        ("x.amax(1)", "amax is amin"),
        ("(x + 1) // 2", "FloorDiv -> Mult"),
    ],
)
def test_each_kind_of_number_has_an_edit_that_can_be_seen(expression: str, expected: str) -> None:
    assert expected in edits(f"def f(x):\n    return {expression}\n")


def test_every_edit_is_another_program_and_follows_from_its_seed() -> None:
    for name in package_files(PACKAGE):
        if name.partition("/")[0] in ("rank", "identity"):
            source = (PACKAGE / name).read_text()
            edit = draw_edit(name, source, random.Random(5))
            assert edit == draw_edit(name, source, random.Random(5))
            assert edit is None or ast.dump(ast.parse(edit.text)) != ast.dump(ast.parse(source))


def test_tests_that_name_the_function_come_first() -> None:
    edit = draw_edit("identity/nullspace.py", (PACKAGE / "identity" / "nullspace.py").read_text(), random.Random(0))
    assert edit is not None
    files = find_tests(edit, ROOT / "tests")
    assert "nullspace" in Path(files[0]).read_text() and len(files) > 20


def test_an_edit_that_lives_is_named_and_too_many_fail_the_campaign() -> None:
    noticed = {"number": 1, "edit": "a", "line": 1, "end": "noticed by t"}
    text, good = summarise(
        [noticed] * 18 + [noticed | {"end": "equivalent"}] * 9 + [noticed | {"end": "LIVES", "edit": "b"}]
    )
    assert not good and "edit 1 lives: line 1 of b" in text and "95%" in text
    assert summarise([noticed] * 19 + [noticed | {"end": "LIVES"}])[1]
