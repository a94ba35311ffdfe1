"""Guards the layout that CONTRIBUTING.md describes: rooms import downwards, the picture is of this code, every path exists."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
_SPEC = importlib.util.spec_from_file_location("house", ROOT / "docs" / "house.py")
assert _SPEC is not None and _SPEC.loader is not None
house = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(house)


def test_rooms_import_only_from_floors_below_and_the_picture_shows_it() -> None:
    rooms = house.rooms()
    assert house.upward(rooms) == []
    assert house.describe_imports(rooms) in house.PICTURE.read_text(), "out of date: run `python docs/house.py`"


def test_no_file_is_long() -> None:
    lines = {str(file.relative_to(ROOT)): len(file.read_text().splitlines()) for file in house.PACKAGE.rglob("*.py")}
    assert {file: count for file, count in lines.items() if count > 300} == {}


def test_every_path_in_the_answers_exists() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    paths = re.findall(r"`((?:src|docs|tests|workflow)/[\w./]+)`", text)
    assert len(paths) >= 14
    assert [path for path in paths if not (ROOT / path).exists()] == []
