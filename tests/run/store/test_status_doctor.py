"""Guards what a person is told: every cell of the grid in exactly one state, why it failed, and what is wrong with
the machine.
"""

import json
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from rankfall import cli
from rankfall.run.screen.state import RunState
from rankfall.run.screen.watch import RunRecord
from rankfall.run.store import Store

STATES = {
    "k0": "done",
    "k1": "done",
    "k2": "diverged",
    "k3": "failed",
    "k4": "failed",
}  # k4 is begun again, k5 is begun, k6 is missing


def a_cell(key):
    return SimpleNamespace(
        key=key, group="g", shard="5ad", seed=int(key[1:]), task=SimpleNamespace(name="sorting"),
        architecture=SimpleNamespace(name="san" if key < "k4" else "[transformer]", depth=6),
        training=SimpleNamespace(name="published"),
        labels=("sorting", "san" if key < "k4" else "[transformer]", "published"),
        content={"training": {"lr": int(key[1:])}},
    )  # fmt: skip


@pytest.fixture
def results(tmp_path, monkeypatch):
    plan = SimpleNamespace(cells=[a_cell(f"k{i}") for i in range(7)])
    monkeypatch.setattr("rankfall.run.plan.make_plan", lambda path: plan, raising=False)
    store = Store(tmp_path / "store")
    for key, status in STATES.items():
        reason = "" if status == "done" else f"what happened to {key}"
        store.save_stack("g", [key], {"w": torch.zeros(1)}, [{"status": status, "reason": reason}])
    store.save_checkpoint("c", {}, {"cells": ["k4", "k5"]})
    log = tmp_path / "logs" / "train" / "sorting" / "5ad" / "ab.log"
    log.parent.mkdir(parents=True)
    log.write_text("line one\n" * 10_000 + "ValueError: [bold] is not a number\n\n")
    (tmp_path / "logs" / "train" / "sorting" / "other").mkdir()
    (tmp_path / "logs" / "train" / "sorting" / "other" / "ab.log").write_text("nothing to do with it")
    return tmp_path


def test_every_cell_is_in_one_state_and_a_failure_shows_its_log(results, capsys):
    assert cli.main(["status", "--config", "c", "--results", str(results), "--json", "--lines", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["total"] == {"done": 2, "diverged": 1, "failed": 1, "begun": 2, "missing": 1}
    assert found["cells"][0] == {
        "task": "sorting", "architecture": "san", "training": "published",
        "done": 2, "diverged": 1, "failed": 1, "begun": 0, "missing": 0,
    }  # fmt: skip
    diverged, failed = found["not_done"]
    assert (diverged["key"], diverged["reason"], diverged["tail"]) == ("k2", "what happened to k2", [])
    assert (failed["key"], failed["tail"]) == ("k3", ["line one", "ValueError: [bold] is not a number"])


def cells_table(results, **ended):
    """The columns that are read of the table of cells: seed 0 is done, the others as told."""
    rows = [{"seed": int(seed), "status": status} for seed, status in {"0": "done", **ended}.items()]
    about = {"task": "sorting", "architecture": "san", "training": "published", "depth": 6}
    rows = [about | row | {"reason": "" if row["status"] == "done" else f"why {row['status']}"} for row in rows]
    (results / "tables").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), results / "tables" / "cells.parquet")


def in_brief(results, capsys):
    code = cli.main(["status", "--config", "c", "--results", str(results), "--brief"])
    return code, capsys.readouterr().out.splitlines()


def test_in_brief_it_says_what_failed_and_why(tmp_path, capsys):
    """As at the end of `make run`, which a failed cell ends with status 1; a network that diverged is a result."""
    cells_table(tmp_path, **{"2": "diverged", "3": "failed", "4": "failed"})
    code, (failed, diverged, last) = in_brief(tmp_path, capsys)
    assert failed == "==> failed: sorting / san / published, depth 6, seed 3 and 1 more: why failed"
    assert diverged == "==> diverged: sorting / san / published, depth 6, seed 2: why diverged"
    assert last.startswith(
        "==> 3 of 4 cells failed or diverged; all of them: rankfall status --config c; to train failed"
    )
    assert code == 1


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
    code, (line,) = in_brief(tmp_path, capsys)
    assert (code, line) == (1, "==> failed: train sorting: ValueError: no; log: ")


def doctor(results, capsys, *more):
    code = cli.main(["doctor", "--results", str(results), "--json", *more])
    return code, json.loads(capsys.readouterr().out)


def test_the_doctor_finds_nothing_wrong_here_and_leaves_nothing_behind(tmp_path, capsys):
    code, checks = doctor(tmp_path, capsys, "--verify")
    assert [check for check in checks if check["state"] == "fail"] == []
    assert code == 0
    assert {"python", "packages", "processors", "results", "disk", "store"} <= {c["name"] for c in checks}
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert cli.main(["doctor", "--results", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("ok ")


@pytest.mark.long
def test_the_doctor_reads_all_files_when_told_to(results, capsys):
    path = Store(results / "store").find_cells(["k0"])["k0"].stack
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    code, checks = doctor(results, capsys)
    assert code == 0  # headers alone do not show it
    code, checks = doctor(results, capsys, "--verify")
    assert code == 1
    assert [check["text"] for check in checks if check["state"] == "fail"] == [
        "1 of 6 files were damaged and set aside: run again, they are recomputed"
    ]
    code, checks = doctor(results, capsys, "--verify")
    assert code == 0
    assert any(check["state"] == "warn" and "1 damaged file" in check["text"] for check in checks)
