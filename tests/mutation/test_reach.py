"""Guards which tests are said to reach a function: also those that find its result in memory, or in a fixture that others made."""

import sys
import textwrap
from pathlib import Path

import pytest
from children import in_child
from reach import survey, survey_file

SOURCE = """
from functools import lru_cache


@lru_cache
def area(width):
    return width * 2


def length(width):
    return width
"""
TESTS = """
import pytest
from area import area, length


@pytest.fixture(scope="module")
def shared():
    return length(3)


def test_first(shared):
    assert area(3) == 6


def test_kept():
    assert area(3) == 6


def test_shared(shared):
    assert shared == 3
"""


@pytest.mark.long
def test_what_is_kept_in_memory_is_reached_by_every_test_that_asks(tmp_path: Path) -> None:
    package, folder = tmp_path / "src" / "rankfall", tmp_path / "tests" / "rank"
    for path, text in ((package / "area.py", SOURCE), (folder / "test_area.py", TESTS)):
        path.parent.mkdir(parents=True)
        path.write_text(textwrap.dedent(text))
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    path = [*sys.path]
    found = in_child(package, lambda: survey_file(tmp_path, "tests/rank/test_area.py"), 60.0)
    assert sys.path == path and found is not None and not found["failed"]
    reached = {name.rpartition("::")[2]: test["functions"] for name, test in found["tests"].items()}
    area, length = "area.py:5", "area.py:10"
    assert {area, length} <= set(reached["test_first"])
    assert area in reached["test_kept"] and length not in reached["test_kept"]
    assert length in reached["test_shared"] and area not in reached["test_shared"]


@pytest.mark.long
def test_a_survey_is_kept_for_as_long_as_a_files_sources_are_the_same(tmp_path: Path) -> None:
    """All of it was made again with each campaign, which took nine minutes."""
    package, folder, kept = tmp_path / "src" / "rankfall", tmp_path / "tests" / "rank", tmp_path / "reach.json"
    for path in (package, folder):
        path.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\npythonpath = ['src/rankfall']\n")
    write = f"open('{tmp_path}/asked', 'a').write"
    for name in ("area", "length"):
        (package / f"{name}.py").write_text(f"def {name}(width):\n    return width\n")
        test = f"from {name} import {name}\n\n\ndef test_{name}():\n    {write}('{name} ')\n    assert {name}(3)\n"
        (folder / f"test_{name}.py").write_text(test)

    def ask() -> list[str]:
        (tmp_path / "asked").write_text("")
        found = survey(tmp_path, ["rank"], kept, 60.0)
        assert {name.rpartition("::")[2] for name in found} == {"test_area", "test_length"}
        return (tmp_path / "asked").read_text().split()

    assert ask() == ["area", "length"] and ask() == []
    (package / "area.py").write_text("SIZE = 2\n\n\ndef area(width):\n    return width\n")
    assert ask() == ["area"]
    (package / "run").mkdir()
    (package / "run" / "plan.py").write_text("")  # computes no number
    assert ask() == []
    (package / "new.py").write_text("")  # a component that tests may find by its name
    assert ask() == ["area", "length"]
    (package / "length.py").write_text("def length(width):\n    return 0\n")
    with pytest.raises(RuntimeError, match=r"test_length\.py fails without an edit"):
        ask()
