"""Guards what `rankfall plan` says: fresh, stale or new, through which file or key, and how much work is left."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from plans import VALID, changed

from rankfall.cli import main
from rankfall.run.plan import Plan, make_plan
from rankfall.run.plan.cell import Cell
from rankfall.run.snakemake.estimates import InStore, estimates
from rankfall.run.snakemake.jobs import PlanJobs
from rankfall.run.snakemake.run_plan import RunPlan
from rankfall.run.snakemake.status import status
from rankfall.run.store import Store


def keep(plan: Plan, results: Path, cells: list[Cell] | None = None, **record: Any) -> None:
    """Put results of these cells into the store, as a job would."""
    store = Store(results / "store")
    for cell in plan.cells if cells is None else cells:
        about = {"status": "done", "seconds": 1.0, **plan.origin(cell), **record}
        store.save_stack(cell.group, [cell.key], {"w": torch.zeros(1, 2)}, [about])


def check_status(plan: Plan, results: Path, counts: tuple[int, int, int], reasons: dict[tuple[str, str], int]) -> None:
    """Compare the cells that are fresh, stale and new, and why they are stale or new."""
    report = status(plan, RunPlan.make(plan, {}, results), False)
    assert tuple(sum(getattr(line, state) for line in report.lines) for state in ("fresh", "stale", "new")) == counts
    assert report.reasons == reasons


def test_an_edit_of_the_configuration_is_named(tmp_path: Path) -> None:
    plan = make_plan(VALID)
    keep(plan, tmp_path, plan.cells[1:])
    keep(plan, tmp_path, plan.cells[:1], status="failed", reason="no luck")
    check_status(plan, tmp_path, (11, 1, 0), {("stale", "failed before: no luck"): 1})
    keep(plan, tmp_path)
    added = make_plan(changed("grid/0/seed", "0..3"))
    check_status(added, tmp_path, (12, 0, 4), {("new", "not computed before"): 4})
    other = make_plan(changed("trainings/short/lr", 0.5))
    check_status(other, tmp_path, (0, 0, 12), {("new", "training.lr: 0.001 -> 0.5"): 12})


def test_changed_file_is_named(lab: Path) -> None:
    """By the cells that use it, and by their jobs."""
    (lab / "statuslab.py").write_text("def sharp(scores): return scores\n")
    config = changed(
        "compute", {"shard_minutes": 0.003}, changed("figures", {"paths": {}}, changed("grid/0/depth", "1..6"))
    )
    config = changed("architectures/full/normaliser", "statuslab:sharp", config)

    def plan_run() -> RunPlan:
        run = RunPlan.make(make_plan(config), config, lab / "results")
        run.write()
        return run

    before = plan_run()
    assert before.plan is not None and before.lines() == [], "nothing was there to compare with"
    keep(before.plan, lab / "results")
    for file in before.makers:
        (lab / "results" / file).parent.mkdir(parents=True, exist_ok=True)
        (lab / "results" / file).touch()
    (lab / "statuslab.py").write_text("def sharp(scores): return -scores\n")
    now = plan_run()
    assert now.plan is not None
    check_status(now.plan, lab / "results", (18, 18, 0), {("stale", "statuslab.py changed"): 18})
    why = now.explain(now.find_missing())
    trains = {key for key in now.jobs if key.startswith("train/")}
    assert {key for key, reason in why.items() if reason == "statuslab.py changed"} == trains & why.keys()
    assert 0 < len(trains & why.keys()) < len(trains), "an edit should leave some shard alone"
    assert why["table/cells"] == "its cells, options or input files changed"
    assert any("statuslab.py changed" in line for line in now.lines())
    assert before.explain(before.find_missing()) == {}


def test_what_the_store_has_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """12 minutes were said of 4 seconds of work: each job counted all of its cells."""
    plan = make_plan(changed("compute", {"shard_minutes": 60}))

    def count_cells() -> list[int]:
        return [
            cells for _, _, cells in estimates(plan, PlanJobs(plan).all_jobs, InStore(plan, tmp_path), 1.0).values()
        ]

    assert max(count_cells()) == len(plan.cells)
    kept = set(plan.cells[1:])
    monkeypatch.setattr(InStore, "statuses", {cell.key: "done" for cell in kept})
    monkeypatch.setattr(InStore, "_is_measured", lambda self, name, cell: cell in kept)
    assert [cells for cells in count_cells() if cells] == [1, 1]  # training and measuring the one that is left
    (shard,) = plan.shards
    assert InStore(plan, tmp_path).find_left(PlanJobs(plan).job("train", *shard)) == [plan.cells[0]]


def test_a_lost_store_computes_nothing_that_the_tables_have(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The plan and Snakemake agree: what is there is not computed again because the networks behind it are gone."""
    config = changed("figures", {"paths": {}})
    (lab / "config.json").write_text(json.dumps(config))
    run = RunPlan.make(make_plan(config), config)
    for file in run.makers:
        (run.results / file).parent.mkdir(parents=True, exist_ok=True)
        (run.results / file).touch()

    def print_plan() -> str:
        assert main(["plan", "--config", "config.json"]) == 0
        return capsys.readouterr().out

    first = print_plan()
    assert "12 of them kept: their networks are no longer in the store" in first and "to compute in" not in first
    shutil.rmtree(run.results / "work" / "table")
    assert "to compute in" not in print_plan(), "tables are combined from shards that are there"
    for kind in ("measure", "figure"):
        shutil.rmtree(run.results / "work" / kind)
    assert "12 to compute in" in print_plan()


@pytest.mark.long
def test_ten_thousand_cells_without_torch(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps(changed("grid/0/seed", "0..2499")))
    program = (
        "import sys, time; from rankfall.cli import main; main(['plan', '--config', 'c.json']); "
        "print(time.process_time(), sorted({'torch', 'pandas', 'pyarrow', 'matplotlib'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "10000 cells" in done.stdout
    seconds, heavy = done.stdout.splitlines()[-1].split(maxsplit=1)
    assert heavy == "[]"
    assert float(seconds) < 10, "several times what it takes: something has become slow"
