"""Tests that a measuring job that ends early keeps the rows that it has measured, unless its code was edited."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import config

from rankfall import cli
from rankfall.report import tables
from rankfall.report.runs import differences
from rankfall.run.plan import make_plan
from rankfall.run.store import Store

pytestmark = pytest.mark.long

# A measure that returns a cell's seed. A file makes it fail in some way at some seed.
PROBE = """
import os, signal
from pathlib import Path
TABLE = "paths"
def probe(context):
    rows = []
    for member, cell in enumerate(context.cells):
        with open("calls", "a") as calls:
            calls.write(f"{cell.seed} ")
        kinds = ("term", "ctrl-c", "error", "edit", "kill")
        trouble = next((kind for kind in kinds if Path(f"trouble{cell.seed}.{kind}").exists()), None)
        if trouble == "term":
            signal.raise_signal(signal.SIGTERM)
        if trouble == "ctrl-c":
            raise KeyboardInterrupt
        if trouble == "kill":
            signal.raise_signal(signal.SIGKILL)
        if trouble == "error":
            raise ValueError("no such number")
        if trouble == "edit":
            os.replace("edited.py", __file__)
        rows.append({"member": member, "kind": "whole", "accuracy": float(cell.seed)})
    return rows
"""


class Lab:
    """A folder with a measure and a configuration of four cells, read two at a time. The first of a stack is measured twice."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, Store(folder / "results" / "store")
        self.configure({"mine": {"measure": "probe_lab:probe"}})
        (folder / "probe_lab.py").write_text(PROBE)
        ((self.task, self.shard),) = self.plan().shards
        self.run("train", "--task", self.task, "--shard", self.shard)

    def configure(self, measures: dict[str, Any], **compute: Any) -> None:
        raw = config(
            grid={"seed": [0, 1, 2, 3]},
            measures=measures,
            compute={"engine": "plain", "threads": 1, "stack": 2} | compute,
        )
        (self.folder / "config.json").write_text(json.dumps(raw))

    def plan(self) -> Any:
        return make_plan(self.folder / "config.json")

    def run(self, verb: str, *rest: str) -> int:
        return cli.main([verb, "--config", "config.json", *rest])

    def measure(self, name: str = "mine") -> int:
        return self.run(
            "measure", "--measure", name, "--task", self.task, "--shard", self.shard, "--out", "out.parquet"
        )

    def kept(self, name: str = "mine") -> int:
        plan = self.plan()
        keys = [plan.measure_key(name, cell) for cell in plan.cells]
        return len(self.store.find_rows(plan.measures[name].component.name, keys))

    def calls(self) -> list[str]:
        found = (self.folder / "calls").read_text().split() if (self.folder / "calls").exists() else []
        (self.folder / "calls").unlink(missing_ok=True)
        return found


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "probe_lab", raising=False)
    return Lab(tmp_path)


@pytest.mark.parametrize("interval", [1e-9, 3600.0])
def test_ctrl_c_loses_the_running_cell_only(lab: Lab, interval: float) -> None:
    lab.configure({"mine": {"measure": "probe_lab:probe"}}, checkpoint_seconds=interval)
    Path("trouble3.ctrl-c").touch()
    assert lab.measure() == 130
    assert lab.kept() == 3


def test_sigterm_ends_after_the_running_cell_and_the_next_run_goes_on(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("trouble0.term").touch()
    assert lab.measure() == 75
    assert "SIGTERM between stacks; run again" in capsys.readouterr().err
    assert (lab.kept(), lab.calls()) == (1, ["0"])
    assert not (lab.folder / "out.parquet").exists()
    assert lab.measure() == 0
    assert "1 in store, 3 to measure" in capsys.readouterr().out
    assert lab.calls() == ["1", "2", "1", "3"]  # the first once more: what it gives must not depend on what came before


def test_nothing_of_a_measure_that_is_edited_while_it_runs_is_kept_under_a_wrong_key(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("trouble2.edit").touch()
    Path("edited.py").write_text(PROBE.replace("float(cell.seed)", "float(cell.seed + 1)"))
    assert lab.measure() == 2
    assert "probe_lab.py changed since this run was planned" in capsys.readouterr().err
    assert lab.kept() == 0  # of the edited text
    Path("trouble2.edit").unlink()
    (lab.folder / "probe_lab.py").write_text(PROBE)
    assert lab.measure() == 0
    assert sorted(tables.read(lab.folder / "out.parquet", "paths")["accuracy"].to_pylist()) == [0.0, 1.0, 2.0, 3.0]


def test_a_killed_worker_loses_its_own_cell_and_the_rows_are_those_of_one_process(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lab.measure() == 0
    alone = tables.read(lab.folder / "out.parquet", "paths")
    shutil.rmtree(lab.store.root / "measures")
    lab.configure({"mine": {"measure": "probe_lab:probe"}}, stack=1, workers=2)
    Path("trouble1.kill").touch()
    assert lab.measure() == 2
    assert "1 of 4 stacks are not finished, since a worker was killed" in capsys.readouterr().err
    assert lab.kept() == 3
    Path("trouble1.kill").unlink()
    assert lab.measure() == 0
    assert not differences(tables.read(lab.folder / "out.parquet", "paths"), alone)
