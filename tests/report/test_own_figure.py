"""Guards the way from a figure of one's own to an error that says what is wrong with it."""

import json
from pathlib import Path

import pytest

from rankfall import cli

LAB = """
from matplotlib.figure import Figure

TABLES = ["cells"]

def bare(read):
    return Figure()
"""


def test_a_figure_that_returns_no_picture_is_told_what_to_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "figurelab.py").write_text(LAB)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    config = {
        "tasks": {"sorting": {"train": 20, "test": 10}},
        "architectures": {"net": {}},
        "trainings": {"init": {}},
        "grid": [{"task": "sorting", "architecture": "net", "training": "init", "seed": 0}],
        "figures": {"own": {"figure": "figurelab:bare"}},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "tables").mkdir()
    wanted = ["figure", "--config", "config.json", "--name", "own", "--tables", "tables", "--out", "own.png"]
    assert cli.main(wanted) == 2
    said = capsys.readouterr().err
    assert "figurelab:bare returns a Figure; return `Picture(figure, caption)`" in said
    assert not (tmp_path / "own.png").exists()
