"""Guards that keys hold the version of what a user's component imports, and of nothing that own components import."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import config

from rankfall import cli, modules
from rankfall.run.guards import Edited, check_unchanged
from rankfall.run.plan import make_plan
from rankfall.run.plan.cell import Cell
from rankfall.run.store import Store

COMPONENT = (
    "import {module}\nimport numpy, scipy, torch, pandas, json\ndef sharp(logits):\n    return logits.softmax(-1)\n"
)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A component, its helper, and an installed package that the helper imports, in version 1.0."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    site = tmp_path / "site-packages"
    (site / "labpackage").mkdir(parents=True)
    (site / "labpackage" / "__init__.py").write_text("FACTOR = 1\n")
    install(tmp_path, "1.0")
    monkeypatch.syspath_prepend(site)
    modules._distributions.cache_clear()
    (tmp_path / "installed_lab.py").write_text(COMPONENT.format(module="installed_helper"))
    (tmp_path / "installed_helper.py").write_text("import labpackage\n")
    yield tmp_path  # type: ignore[misc]
    modules._distributions.cache_clear()
    for name in ("installed_lab", "installed_helper", "labpackage"):
        sys.modules.pop(name, None)


def install(folder: Path, version: str) -> None:
    info = folder / "site-packages" / "lab_package-0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: lab-package\nVersion: {version}\n")
    (info / "top_level.txt").write_text("labpackage\n")


def raw(normaliser: str = "installed_lab:sharp") -> dict[str, Any]:
    return config(architecture={"normaliser": normaliser, "depth": 1})


def cell_of(normaliser: str = "installed_lab:sharp") -> Cell:
    (cell,) = make_plan(raw(normaliser)).cells
    return cell


def versions(cell: Cell) -> dict[str, str]:
    return {name: version for name, version in cell.code.items() if name.startswith(modules.PREFIX)}


def test_another_version_of_what_a_helper_imports_makes_cells_stale(lab: Path) -> None:
    before = cell_of()
    assert versions(before) == {"installed:lab-package": "1.0"}, "and neither the common ground nor Python's own"
    install(lab, "1.1")
    after = cell_of()
    assert versions(after) == {"installed:lab-package": "1.1"} and after.key != before.key
    install(lab, "1.0")
    assert cell_of().key == before.key


def test_a_version_that_changes_while_a_job_runs_is_kept_under_no_key(lab: Path) -> None:
    code = cell_of().code
    check_unchanged(code)
    install(lab, "1.1")
    with pytest.raises(Edited, match="installed:lab-package changed since this run was planned"):
        check_unchanged(code)


@pytest.mark.long
def test_a_job_trains_again_after_an_upgrade_and_show_tells_the_version(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (lab / "config.json").write_text(json.dumps(raw()))
    command = ["train", "--config", "config.json", "--task", "sorting", "--shard", "0", "--out", "t.parquet"]
    for version, cells in (("1.0", 1), ("1.0", 1), ("1.1", 2)):
        install(lab, version)
        assert cli.main(command) == 0
        assert len(list(Store(lab / "results" / "store").records())) == cells
        capsys.readouterr()
        assert cli.main(["show", cell_of().key]) == 0
        assert f"installed lab-package {version}\n" in capsys.readouterr().out
