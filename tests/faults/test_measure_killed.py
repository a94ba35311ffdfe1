"""Tests that a measuring job that ends early keeps the rows that it has measured, unless its code was edited."""

import json
import shutil
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
def interrupt():
    raise KeyboardInterrupt
TROUBLES = {
    "term": lambda: signal.raise_signal(signal.SIGTERM),
    "ctrl-c": interrupt,
    "kill": lambda: signal.raise_signal(signal.SIGKILL),
    "edit": lambda: os.replace("edited.py", __file__),
}
def probe(context):
    rows = []
    for member, cell in enumerate(context.cells):
        with open("calls", "a") as calls:
            calls.write(f"{cell.seed} ")
        for kind, act in TROUBLES.items():
            if Path(f"trouble{cell.seed}.{kind}").exists():
                act()
        rows.append({"member": member, "kind": "whole", "accuracy": float(cell.seed)})
    return rows
"""
SHARD = ("--task", "sorting", "--shard", "0")


class Lab:
    """A folder with a measure and a configuration of four cells, read two at a time. The first of a stack is measured twice."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, Store(folder / "results" / "store")
        (folder / "probe_lab.py").write_text(PROBE)
        self.configure()
        assert cli.main(["train", "--config", "config.json", *SHARD]) == 0

    def configure(self, **compute: Any) -> None:
        measures = {"mine": {"measure": "probe_lab:probe"}}
        how = {"engine": "plain", "threads": 1, "stack": 2} | compute
        raw = config(grid={"seed": [0, 1, 2, 3]}, measures=measures, compute=how)
        (self.folder / "config.json").write_text(json.dumps(raw))

    def measure(self) -> int:
        return cli.main(["measure", "--config", "config.json", "--measure", "mine", *SHARD, "--out", "out.parquet"])

    def read_table(self) -> Any:
        return tables.read(self.folder / "out.parquet", "paths")

    def count_kept(self) -> int:
        plan = make_plan(self.folder / "config.json")
        return len(self.store.find_rows("probe_lab:probe", [plan.measure_key("mine", cell) for cell in plan.cells]))

    def pop_calls(self) -> str:
        calls = (self.folder / "calls").read_text()
        (self.folder / "calls").unlink()
        return calls


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return Lab(tmp_path)


@pytest.mark.parametrize("interval", [1e-9, 3600.0])
def test_ctrl_c_loses_the_running_cell_only(lab: Lab, interval: float) -> None:
    lab.configure(checkpoint_seconds=interval)
    Path("trouble3.ctrl-c").touch()
    assert lab.measure() == 130
    assert lab.count_kept() == 3


def test_sigterm_ends_after_the_running_cell_and_the_next_run_goes_on(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("trouble0.term").touch()
    assert lab.measure() == 75
    assert "SIGTERM between stacks; run again" in capsys.readouterr().err
    assert (lab.count_kept(), lab.pop_calls()) == (1, "0 ")
    assert not (lab.folder / "out.parquet").exists()
    assert lab.measure() == 0
    assert "1 in store, 3 to measure" in capsys.readouterr().out
    assert lab.pop_calls() == "1 2 1 3 "  # the first once more: what it gives must not depend on what came before


def test_nothing_of_a_measure_that_is_edited_while_it_runs_is_kept_under_a_wrong_key(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("trouble2.edit").touch()
    Path("edited.py").write_text(PROBE.replace("float(cell.seed)", "float(cell.seed + 1)"))
    assert lab.measure() == 2
    assert "probe_lab.py changed since this run was planned" in capsys.readouterr().err
    Path("trouble2.edit").unlink()
    (lab.folder / "probe_lab.py").write_text(PROBE)
    assert lab.count_kept() == 0
    assert lab.measure() == 0
    assert sorted(lab.read_table()["accuracy"].to_pylist()) == [0.0, 1.0, 2.0, 3.0]


def test_a_killed_worker_loses_its_own_cell_and_lost_networks_are_trained_again(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rows are those of one process."""
    assert lab.measure() == 0
    alone = lab.read_table()
    shutil.rmtree(lab.store.root / "measures")
    lab.configure(stack=1, workers=2)
    Path("trouble1.kill").touch()
    assert lab.measure() == 2
    assert "1 of 4 stacks are not finished, since a worker was killed (SIGKILL)" in capsys.readouterr().err
    assert lab.count_kept() == 3
    Path("trouble1.kill").unlink()
    for part in ("stacks", "data"):
        shutil.rmtree(lab.store.root / part)
    assert lab.measure() == 0
    assert not differences(lab.read_table(), alone)
    assert lab.store.find_cells([cell.key for cell in make_plan(lab.folder / "config.json").cells])
