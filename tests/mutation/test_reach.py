"""Guards which tests are said to reach a function: also those that find its result in memory, or in a fixture that others made."""

import sys
import textwrap
from pathlib import Path

import pytest
from children import in_child
from reach import survey_tests

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
    found = in_child(package, lambda: survey_tests(tmp_path, ["rank"]), 60.0)
    assert sys.path == path and found is not None
    reached = {name.rpartition("::")[2]: test["functions"] for name, test in found.items()}
    area, length = "area.py:5", "area.py:10"
    assert {area, length} <= set(reached["test_first"])
    assert area in reached["test_kept"] and length not in reached["test_kept"]
    assert length in reached["test_shared"] and area not in reached["test_shared"]
