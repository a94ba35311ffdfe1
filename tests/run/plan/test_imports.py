"""Guards that a component whose module cannot be imported is refused by the plan, which imports nothing, and no other component is."""

import sys
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
        ("import os\nfrom no_such_library.deep import thing", 3, "no_such_library.deep"),
        ("import rankfall.nets.no_such_part", 2, "rankfall.nets.no_such_part"),
    ],
)
def test_an_import_that_cannot_succeed_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imports: str, line: int, missing: str
) -> None:
    name = square(tmp_path, monkeypatch, "lab_lacking", imports)
    said = refusal(config(NORMALISER, name))
    assert (
        f"'{name}'" in said
        and f"lab_lacking.py, line {line}, imports {missing}, which is neither installed nor beside it" in said
    )


def test_so_is_one_of_a_helper_that_the_module_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    component(tmp_path, "lab_helper", "from no_such_library import thing")
    name = square(tmp_path, monkeypatch, "lab_helped", "from lab_helper import thing")
    assert "lab_helper.py, line 1, imports no_such_library" in refusal(config(NORMALISER, name))
    (tmp_path / "lab_package").mkdir()
    (tmp_path / "lab_package" / "__init__.py").write_text("")
    (tmp_path / "lab_package" / "part.py").write_text("from .absent import thing")
    name = square(tmp_path, monkeypatch, "lab_packed", "from lab_package import part")
    assert "lab_package/part.py, line 1, imports lab_package.absent" in refusal(config(NORMALISER, name))


@pytest.mark.parametrize(
    "imports",
    [
        "try:\n    import no_such_library\nexcept ImportError:\n    no_such_library = None",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import no_such_library",
        "def later():\n    import no_such_library",
        "import torch.nn.functional as f\nfrom torch import Tensor\nfrom matplotlib import pyplot",
        "from lab_names.inner import anything\nimport lab_names.inner",
        "import rankfall.nets.normalisers.softmax\nfrom rankfall.nets import primitives",
    ],
)
def test_what_may_succeed_is_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imports: str) -> None:
    (tmp_path / "lab_names" / "inner").mkdir(parents=True)  # folders without `__init__.py`
    (tmp_path / "lab_names" / "inner" / "anything.py").write_text("")
    name = square(tmp_path, monkeypatch, "lab_able", imports)
    assert planned(NORMALISER, name).cells and "lab_able" not in sys.modules
