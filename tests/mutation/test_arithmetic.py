"""Guards the campaign on arithmetic itself: edits change numbers by more than a tolerance, and one that no test notices is seen."""

import ast
import random
import textwrap
from pathlib import Path

import pytest
from arithmetic import chance_of, find_tests, summarise
from edits import draw_edit
from mutants import package_files
from reach import EVERYTHING

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "rankfall"
SOURCE = textwrap.dedent('''
    """A room."""
    SIZE = 3
    LIMITS = {"height": (9, None)}


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
    assert edits(SOURCE) == {"3 is 4", "Lt turned round", "0 is 1", "Mult -> Div"}


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


def test_edits_of_one_statement_have_names_of_their_own() -> None:
    """In the order in which they are read, so that the reason why one is equivalent excuses no other."""
    source = "def f(x, m):\n    return x - m - 2, x - m\n"
    found = [draw_edit("rank/f.py", source, random.Random(seed)) for seed in range(60)]
    lines = {edit.what: edit.text.splitlines()[-1].removeprefix("    return ") for edit in found if edit is not None}
    assert lines == {
        "Sub -> Add": "(x + m - 2, x - m)",
        "Sub -> Add (2)": "(x - m + 2, x - m)",
        "Sub -> Add (3)": "(x - m - 2, x + m)",
        "2 is 3": "(x - m - 3, x - m)",
    }
    assert len({edit.name for edit in found if edit is not None}) == 4


@pytest.mark.long
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
    same, lives = noticed | {"end": "equivalent"}, noticed | {"end": "LIVES", "edit": "b"}
    text, good = summarise([noticed] * 94 + [same] * 9 + [lives] * 6)
    assert not good and "edit 1 lives: line 1 of b" in text and "94%" in text
    assert summarise([noticed] * 95 + [lives] * 5)[1]


def test_a_sample_fails_where_chance_does_not_explain_it() -> None:
    noticed = {"number": 1, "edit": "a", "line": 1, "end": "noticed by t"}
    lives = noticed | {"end": "LIVES"}
    assert summarise([noticed] * 24 + [lives] * 6)[1]
    assert not summarise([noticed] * 23 + [lives] * 7)[1]
    assert chance_of(1, 2, 0.9) == pytest.approx(0.19) and chance_of(0, 30, 0.9) == pytest.approx(1)


def test_tests_that_reach_a_function_are_those_that_call_it() -> None:
    tests = {
        "tests/rank/test_a.py::test_slow": {"seconds": 2.0, "functions": ["rank/area.py:7"]},
        "tests/rank/test_a.py::test_quick": {"seconds": 1.0, "functions": ["rank/area.py:7", "rank/area.py:9"]},
        "tests/rank/test_b.py::test_other": {"seconds": 1.0, "functions": ["rank/area.py:9"]},
        "tests/api/test_c.py::test_process": {"seconds": 3.0, "functions": [EVERYTHING]},
        "tests/docs/test_d.py::test_elsewhere": {"seconds": 3.0, "functions": ["rank/area.py:7"]},
    }
    found = (draw_edit("rank/area.py", SOURCE, random.Random(seed)) for seed in range(9))
    edit = next(edit for edit in found if edit is not None and edit.function == "area")
    assert [*edit.begins] == [7]
    assert [name.rpartition("_")[2] for name in find_tests(edit, ROOT / "tests", tests)] == ["quick", "slow", "process"]


def test_tests_of_a_constant_are_those_of_whatever_uses_it(tmp_path: Path) -> None:
    """Of those that call a function of its own file alone, a limit that other files compare with is noticed by none."""
    package = tmp_path / "src" / "rankfall"
    sources = {
        "rank/rows.py": "LEAST, MOST = 0.05, 2\n",
        "rank/figure.py": "from rankfall.rank import rows\n\n\ndef draw(x):\n    return x > rows.LEAST\n",
        "rank/number.py": "from rankfall.rank.rows import LEAST\n\nHALF = LEAST / 2\n\n\ndef count(x):\n    return x > HALF\n",
        "rank/other.py": "LEAST = 3\n\n\ndef other(x):\n    return x > LEAST\n",
    }
    for name, text in sources.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    found = (draw_edit("rank/rows.py", sources["rank/rows.py"], random.Random(seed)) for seed in range(9))
    edit = next(edit for edit in found if edit is not None)
    assert edit.sets == {"LEAST", "MOST"}
    functions = {"drawn": "rank/figure.py:4", "counted": "rank/number.py:6", "other": "rank/other.py:4"}
    tests = {
        f"tests/rank/test_a.py::test_{name}": {"seconds": 1.0, "functions": [place]}
        for name, place in functions.items()
    }
    assert [name.rpartition("_")[2] for name in find_tests(edit, tmp_path / "tests", tests)] == ["drawn", "counted"]


def test_a_campaign_without_an_edit_has_not_passed() -> None:
    """One whose survey of tests took all the time said 100%."""
    text, good = summarise([])
    assert not good and "no edit" in text
