"""Guards that studies use the public interface alone, as a user's study does."""

import ast
from pathlib import Path

import pytest

import rankfall
from rankfall import modules
from rankfall.errors import RankfallError
from rankfall.run.plan import make_plan

FILES = sorted((Path(__file__).parents[2] / "studies").rglob("*.py"))


def test_studies_import_only_what_is_public() -> None:
    for file, node in ((path, node) for path in FILES for node in ast.walk(ast.parse(path.read_text()))):
        if isinstance(node, ast.Import):
            assert not [name.name for name in node.names if name.name.startswith("rankfall")], file
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("rankfall"):
            assert node.module == "rankfall" and {name.name for name in node.names} <= {*rankfall.__all__}, file


def test_every_public_name_is_there() -> None:
    assert [name for name in rankfall.__all__ if not hasattr(rankfall, name)] == []


def test_without_a_checkout_the_error_says_where_studies_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(modules, "CHECKOUT", tmp_path)
    with pytest.raises(RankfallError, match="in studies/ of a checkout of Rankfall"):
        make_plan({"measures": {"norms_prevent_collapse": {}}})


def test_studies_are_known_in_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = make_plan({"measures": {"norms_prevent_collapse": {}, "claims": {}}})
    assert "studies/claims/norms_prevent_collapse/experiment.py" in plan.measures["norms_prevent_collapse"].code
