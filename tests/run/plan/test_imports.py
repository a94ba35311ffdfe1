"""Guards that a component whose module cannot be imported is refused by the plan, with the line, and no other component is."""

from pathlib import Path

import pytest
from plans import changed as config
from plans import component, planned, refusal

SQUARE = """
{imports}
def square(logits):
    return logits.square()
"""
NORMALISER = "architectures/full/normaliser"


def square(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, imports: str) -> str:
    """A normaliser in a module of this name."""
    monkeypatch.chdir(folder)
    component(folder, name, SQUARE.format(imports=imports))
    return f"{name}:square"


@pytest.mark.parametrize(
    ("imports", "line", "missing"),
    [
        ("import no_such_library", 2, "no_such_library"),
        ("import os\nfrom no_such_library.deep import thing", 3, "no_such_library"),
        ("import rankfall.nets.no_such_part", 2, "rankfall.nets.no_such_part"),
    ],
)
def test_an_import_that_fails_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imports: str, line: int, missing: str
) -> None:
    name = square(tmp_path, monkeypatch, "lab_lacking", imports)
    said = f"{NORMALISER.replace('/', '.')}: {tmp_path}/lab_lacking.py, line {line}: cannot be imported: ModuleNotFoundError: "
    assert refusal(config(NORMALISER, name)) == f"{said}No module named {missing!r}"


def test_so_is_one_of_a_helper_that_the_module_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    component(tmp_path, "lab_helper", "from no_such_library import thing")
    name = square(tmp_path, monkeypatch, "lab_helped", "from lab_helper import thing")
    assert "lab_helper.py, line 1: cannot be imported: ModuleNotFoundError" in refusal(config(NORMALISER, name))
    component(tmp_path, "lab_helper", "thing = 1")
    assert planned(NORMALISER, name).cells
