"""An edit while a job runs: what the new code computes is never kept under the key of the old."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import config

from rankfall import cli
from rankfall.code.unchanged import Edited, check_unchanged
from rankfall.plan import Plan, make_plan
from rankfall.store import Store
from rankfall.train.progress import Progress

ROOT = Path(__file__).parents[2]
SHARP = "def sharp(logits):\n    return (2 * logits).softmax(-1)\n"
EDIT = SHARP.replace("2", "3")


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two normalisers in modules of their own, for two architectures: each is imported with its own stack."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("edited_one", "edited_two"):
        (tmp_path / f"{name}.py").write_text(SHARP)
        monkeypatch.delitem(sys.modules, name, raising=False)
    raw = config(training={"epochs": 2}, compute={"threads": 1, "checkpoint_seconds": 1e-9})
    raw["architectures"] = {
        name: {"depth": 1, "width": 8, "normaliser": f"edited_{name}:sharp"} for name in ("one", "two")
    }
    raw["grid"][0] |= {"architecture": ["one", "two"], "seed": [0, 1]}
    (tmp_path / "config.json").write_text(json.dumps(raw))
    return tmp_path


def edit(lab: Path, text: str) -> None:
    for name in ("edited_one", "edited_two"):
        (lab / f"{name}.py").write_text(text)


def train(plan: Plan) -> int:
    ((task, shard),) = plan.shards
    return cli.main(
        [
            "train",
            "--config",
            "config.json",
            "--results",
            "results",
            "--task",
            task,
            "--shard",
            shard,
            "--out",
            "t.parquet",
        ]
    )


def when(monkeypatch: pytest.MonkeyPatch, method: str, act: Callable[[], object]) -> None:
    """Do something when a job tells of its progress."""
    told = getattr(Progress, method)

    def telling(self: Progress, *rest: Any, **named: Any) -> None:
        told(self, *rest, **named)
        act()

    monkeypatch.setattr(Progress, method, telling)


@pytest.mark.parametrize("text", [EDIT, "def sharp(logits:\n"])
def test_an_edit_between_two_stacks_stops_the_job(
    lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    plan, store = make_plan(lab / "config.json"), Store(lab / "results" / "store")
    when(monkeypatch, "cells_done", lambda: edit(lab, text))
    assert train(plan) == 2
    (error,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    assert "changed while the job ran" in error
    assert "run again" in error
    found = store.find_cells([cell.key for cell in plan.cells])
    assert sorted(record.status for record in found.values()) == ["done", "done"]  # the first stack
    assert len({found[cell.key].group for cell in plan.cells if cell.key in found}) == 1
    assert not list((store.root / "checkpoints").glob("*.safetensors"))  # nor may the old key resume from the new code
    assert not (lab / "t.parquet").exists()


def test_data_drawn_by_edited_code_is_not_kept(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "import os\nfrom rankfall.tasks.sorting import INPUTS as _, sorting\nINPUTS = 'tokens'\nTARGETS = 'classes'\n"
    )
    text += "def drawn(rng):\n    return sorting(rng, train=64, test=32, length=5, symbols=6)\n"
    (lab / "edited_data.py").write_text(text)
    raw = config()
    raw["tasks"] = {"sorting": {"task": "edited_data:drawn"}}
    (lab / "config.json").write_text(json.dumps(raw))
    plan = make_plan(lab / "config.json")
    when(monkeypatch, "begin", lambda: (lab / "edited_data.py").write_text(text.replace("64", "65")))
    assert train(plan) == 2
    assert not list((lab / "results").rglob("*.safetensors"))


@pytest.mark.parametrize("path", ["config.yaml", "workflow/presets/paper.yaml"])
def test_all_kinds_of_files_are_what_the_plan_says(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    plan = make_plan(path)
    codes = [cell.code for cell in plan.cells] + [measure.code for measure in plan.measures.values()]
    kinds = {name.rpartition(".")[2] for code in codes for name in code}
    assert kinds >= {"py", "csv", "topics"}
    check_unchanged(*codes)


def test_every_file_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of the user's, another Python's topics, the package's data, a file that is gone."""
    raw = config(architecture={"depth": 1})
    (tmp_path / "text.txt").write_text("to be or not to be " * 40)
    raw["tasks"]["sorting"] = {"task": "memorization", "text": str(tmp_path / "text.txt")}
    plan = make_plan(raw)
    (cell,) = plan.cells
    check_unchanged(cell.code, cell.data_code)
    (tmp_path / "text.txt").write_text("that is the question")
    with pytest.raises(Edited, match=r"text\.txt changed while the job ran"):
        check_unchanged(cell.code)
    for name in ("pydoc_data.topics", "rankfall/report/published/values.csv", "rankfall/gone.py", "gone.txt"):
        with pytest.raises(Edited, match=name):
            check_unchanged({name: "0" * 12})
