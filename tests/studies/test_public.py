"""Guards that studies use the public interface alone, as a user's study does."""

import ast
from pathlib import Path

import pytest

import rankfall

FILES = sorted((Path(__file__).parents[2] / "studies").rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: "/".join(file.parts[-2:]))
def test_a_study_imports_only_what_is_public(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            assert not [name.name for name in node.names if name.name.startswith("rankfall")]
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("rankfall"):
            assert node.module == "rankfall" and {name.name for name in node.names} <= {*rankfall.__all__}


def test_every_public_name_is_there() -> None:
    assert [name for name in rankfall.__all__ if not hasattr(rankfall, name)] == []
