"""Guards what a person is told: every cell of the grid in exactly one state, why it failed, and what is wrong with
the machine.
"""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from helpers import config

from rankfall import cli
from rankfall.run.plan import make_plan
from rankfall.run.screen.state import RunState
from rankfall.run.screen.watch import RunRecord
from rankfall.run.store import Store

LABELS = {"task": "sorting", "architecture": "net", "training": "short"}


@pytest.fixture
def results(tmp_path):
    """Write the results of seven cells: the last failed one is begun again, the next is begun, and one is missing."""
    raw = config(grid={"seed": "0..6"})
    (tmp_path / "c.json").write_text(json.dumps(raw))
    store, cells = Store(tmp_path / "store"), make_plan(raw).cells
    for cell, status in zip(cells, ("done", "done", "diverged", "failed", "failed")):
        reason = "" if status == "done" else f"what happened to {cell.seed}"
        store.save_stack(cell.group, [cell.key], {"w": torch.zeros(1)}, [{"status": status, "reason": reason}])
    store.save_checkpoint("c", {}, {"cells": [cell.key for cell in cells[4:6]]})
    for shard, text in (
        (cells[3].shard, "line one\n" * 10_000 + "ValueError: not a number\n\n"),
        ("other", "of another"),
    ):
        log = tmp_path / "logs" / "train" / "sorting" / shard / "ab.log"
        log.parent.mkdir(parents=True)
        log.write_text(text)
    return tmp_path


def run_status(results, capsys, *words):
    code = cli.main(["status", "--config", str(results / "c.json"), "--results", str(results), *words])
    return code, capsys.readouterr().out


def test_every_cell_is_in_one_state_and_a_failure_shows_its_log(results, capsys):
    code, out = run_status(results, capsys, "--json", "--lines", "2")
    states, counts = json.loads(out), {"done": 2, "diverged": 1, "failed": 1, "begun": 2, "missing": 1}
    assert code == 0 and states["total"] == counts and states["cells"] == [LABELS | counts]
    diverged, failed = states["not_done"]
    assert (diverged["seed"], diverged["reason"], diverged["tail"]) == (2, "what happened to 2", [])
    assert (failed["seed"], failed["tail"]) == (3, ["line one", "ValueError: not a number"])


def test_in_brief_it_says_what_failed_and_why(tmp_path, capsys):
    """As at the end of `make run`, which a failed cell ends with status 1; a network that diverged is a result."""
    (tmp_path / "c.json").write_text(json.dumps(config()))
    (tmp_path / "tables").mkdir()
    statuses = ("done", "diverged", "failed", "failed")
    rows = [LABELS | {"depth": 6, "seed": n, "status": x, "reason": f"why {x}"} for n, x in enumerate(statuses)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "tables" / "cells.parquet")
    code, out = run_status(tmp_path, capsys, "--brief")
    failed, diverged, last = out.splitlines()
    assert failed == "==> failed: sorting / net / short, depth 6, seed 2 and 1 more: why failed"
    assert diverged == "==> diverged: sorting / net / short, depth 6, seed 1: why diverged"
    command = f"rankfall status --config {tmp_path}/c.json; to train failed ones again: rankfall run --retry"
    assert last.startswith(f"==> 3 of 4 cells failed or diverged; all of them: {command}")
    assert code == 1


def run_doctor(results, capsys, *words):
    code = cli.main(["doctor", "--results", str(results), "--json", *words])
    return code, json.loads(capsys.readouterr().out)


def test_in_brief_it_names_the_job_whose_cells_are_in_no_table(tmp_path, capsys):
    """A training job failed before the first table, and nothing was printed, with exit code 0."""
    (tmp_path / "logs").mkdir()
    record = RunRecord(tmp_path, Path("c"), "rankfall run", 1, RunState(0.0))
    job = {
        "event": "job_info",
        "jobid": 1,
        "time": 0.0,
        "rule_name": "train",
        "output": ["o"],
        "wildcards": {"task": "sorting"},
    }
    began = {"event": "run_info", "stats": {"train": 1}}
    record.add([began, job, {"event": "job_error", "time": 1.0, "jobid": 1, "error": "ValueError: no"}])
    code = cli.main(["status", "--config", "c", "--results", str(tmp_path), "--brief"])
    (line,) = capsys.readouterr().out.splitlines()
    assert (code, line) == (1, "==> failed: train sorting: ValueError: no; log: ")


def test_the_doctor_finds_nothing_wrong_here_and_leaves_nothing_behind(tmp_path, capsys):
    code, checks = run_doctor(tmp_path, capsys, "--verify")
    assert code == 0 and not [check for check in checks if check["state"] == "fail"]
    assert {"python", "packages", "processors", "results", "disk", "store"} <= {check["name"] for check in checks}
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert cli.main(["doctor", "--results", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("ok ")


@pytest.mark.long
def test_the_doctor_reads_all_files_when_told_to(results, capsys):
    path = next(cell.stack for cell in Store(results / "store").records() if cell.status == "done")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert run_doctor(results, capsys)[0] == 0  # headers alone do not show it
    code, checks = run_doctor(results, capsys, "--verify")
    failed = [check["text"] for check in checks if check["state"] == "fail"]
    assert code == 1
    assert failed == ["1 of 6 files were damaged and set aside: run again, they are recomputed"]
    code, checks = run_doctor(results, capsys, "--verify")
    assert code == 0
    assert any(
        check["state"] == "warn" and f"damaged files in {results}/store/damaged: 1;" in check["text"]
        for check in checks
    )
