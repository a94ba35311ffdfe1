"""Guards `rankfall init` and `rankfall new`: what they write can be planned as it is, and they overwrite nothing."""

from pathlib import Path

import pytest
import yaml

from rankfall import cli
from rankfall.project import example, example_kinds
from rankfall.run.config.types import read
from rankfall.run.plan import make_plan


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["init", "mylab"]) == 0
    monkeypatch.chdir(tmp_path / "mylab")
    monkeypatch.syspath_prepend(tmp_path / "mylab")
    return tmp_path / "mylab"


def test_a_new_project_can_be_planned(project: Path) -> None:
    assert len((project / "config.yaml").read_text().splitlines()) <= 30
    plan = make_plan(read(project / "config.yaml"))
    assert len(plan.cells) == 18
    assert {cell.architecture.attention.name for cell in plan.cells} == {"multihead", "lab.attention:Capped"}


def test_a_project_starts_from_a_preset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["init", str(tmp_path / "small"), "--preset", "smoke"]) == 0
    assert read(tmp_path / "small" / "config.yaml")["name"] == "smoke"
    assert cli.main(["init", str(tmp_path / "other"), "--preset", "smokes"]) == 2
    assert "there are: atlas" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_nothing_is_overwritten(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "lab" / "attention.py").write_text("mine")
    assert cli.main(["init", str(project)]) == 2
    assert cli.main(["new", "attention"]) == 2
    assert "exists" in capsys.readouterr().err
    assert (project / "lab" / "attention.py").read_text() == "mine"


@pytest.mark.parametrize("kind", example_kinds())
def test_an_example_of_each_kind_is_written(kind: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in example(kind).files:
        (project / file).unlink(missing_ok=True)
    capsys.readouterr()
    assert cli.main(["new", kind]) == 0
    output = capsys.readouterr().out
    for file in example(kind).files:
        assert file in output
        if file.endswith(".py"):
            compile((project / file).read_text(), file, "exec")
    assert isinstance(yaml.safe_load(output.partition("\n\n")[2]), dict)


def test_an_example_gets_another_name(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["new", "task", "mylab/odd.py"]) == 0
    assert "mylab.odd:parity" in capsys.readouterr().out
    assert (project / "mylab" / "odd.py").is_file()
    assert cli.main(["new", "tusk"]) == 2
    assert "did you mean 'task'" in capsys.readouterr().err
