"""Guards which jobs are only looked up, and that doing so gives the tables that the jobs themselves would write."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from increments import fill, finish
from plans import VALID, changed

from rankfall.cli import main
from rankfall.report import tables
from rankfall.report.compare import differences
from rankfall.run.plan import Plan, make_plan
from rankfall.run.snakemake.job_fingerprints import JobFingerprints
from rankfall.run.snakemake.lookups import InStore, ShardJob
from rankfall.run.snakemake.outputs import Outputs
from rankfall.run.snakemake.up_to_date import OutputStates, inspect_outputs
from rankfall.run.snakemake.wiring import Wiring

CONFIG = changed("compute", {"shard_minutes": 0.003}, changed("grid/0/depth", "1..6"))


def look(plan: Plan, results: Path) -> OutputStates:
    return inspect_outputs(plan, JobFingerprints(plan), Outputs.under(results))


def all_jobs(plan: Plan) -> set[ShardJob]:
    return {ShardJob(*place, measure) for place in plan.shards for measure in ("", "paths")}


def test_an_empty_store_has_nothing(tmp_path: Path) -> None:
    plan = make_plan(CONFIG)
    assert len(plan.shards) > 2
    found = look(plan, tmp_path)
    assert (found.computing, found.lookups) == (all_jobs(plan), set())


def test_a_full_store_has_everything(tmp_path: Path) -> None:
    plan = make_plan(CONFIG)
    fill(plan, plan.cells, tmp_path)
    found = look(plan, tmp_path)
    assert (found.computing, found.lookups) == (set(), all_jobs(plan))


def test_a_cell_that_failed_or_was_not_measured_is_computed(tmp_path: Path) -> None:
    plan = make_plan(CONFIG)
    (one, other, *_) = plan.shards
    failed = plan.shards[one][0]
    fill(plan, [cell for cell in plan.cells if cell is not failed], tmp_path)
    fill(plan, [failed], tmp_path, "failed")
    keys = {plan.measure_key("paths", cell) for cell in plan.shards[other]}
    for path in (tmp_path / "store" / "measures").rglob("*.parquet"):
        path.unlink()
    rows = {plan.measure_key("paths", cell): [] for cell in plan.cells if plan.measure_key("paths", cell) not in keys}
    from rankfall.run.store import Store

    Store(tmp_path / "store").save_rows("paths", rows)
    found = look(plan, tmp_path)
    assert found.computing == {ShardJob(*one), ShardJob(*one, "paths"), ShardJob(*other, "paths")}
    assert found.lookups == all_jobs(plan) - found.computing
    assert InStore(plan, tmp_path).has(ShardJob(*other))


def test_a_diverged_cell_has_no_rows_to_look_for(tmp_path: Path) -> None:
    plan = make_plan(CONFIG)
    fill(plan, plan.cells, tmp_path, "diverged")
    shutil.rmtree(tmp_path / "store" / "measures")
    assert look(plan, tmp_path).lookups == all_jobs(plan)


@pytest.mark.long
def test_new_cells_are_no_reason_for_other_shards(tmp_path: Path) -> None:
    """A new depth: the shards without it are neither looked up nor made to wait for the data."""
    config = changed("results", str(tmp_path / "results"), CONFIG)
    plan = make_plan(config)
    finish(plan, tmp_path / "results")
    more = changed("grid/0/depth", "1..7", config)
    wiring, there = Wiring(more, runs=True), {cell.key for cell in plan.cells}
    new = {cell for cell in wiring.plan.cells if cell.key not in there}
    places = {(cell.task.name, cell.shard) for cell in new}
    assert wiring.states.shards == places
    moved = {place for place, cells in wiring.plan.shards.items() if plan.shards.get(place) != cells} - places
    assert {job.place for job in wiring.lookups} == moved
    assert places | moved < set(wiring.plan.shards)
    for task, shard in wiring.plan.shards:
        at = SimpleNamespace(task=task, shard=shard, measure="paths")
        assert bool(wiring.train_inputs(at)) == bool(wiring.measure_inputs(at)) == ((task, shard) in places)
    wiring.set_forced(False, ["train"])  # forced: what is made of it waits
    assert all(wiring.train_inputs(SimpleNamespace(task=t, shard=s)) for t, s in wiring.plan.shards)


def test_a_job_of_a_cluster_looks_at_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is on the disk by then, it finds the rule that it was started for."""
    monkeypatch.setattr("rankfall.run.snakemake.wiring.inspect_outputs", None)
    wiring = Wiring(changed("results", str(tmp_path), CONFIG), runs=False)
    (task, shard), *_ = wiring.plan.shards
    assert wiring.lookups == []
    assert wiring.train_inputs(SimpleNamespace(task=task, shard=shard)) == []
    assert wiring.measure_inputs(SimpleNamespace(task=task, shard=shard, measure="paths")) == []


TINY: Any = changed("measures/paths", {"counts": [2], "repeats": 1}, changed("grid/0/depth", [1, 2], VALID))
TINY = changed("grid/0/seed", [0], changed("compute", {"shard_minutes": 1e-5, "threads": 1}, TINY))


@pytest.mark.long
def test_looked_up_tables_are_those_of_the_jobs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(changed("results", str(tmp_path / "results"), TINY)))
    plan, outputs = make_plan(config), Outputs.under(tmp_path / "results")
    assert len(plan.shards) > 1
    common = ["--config", str(config)]
    for task, shard in plan.shards:
        at = [*common, "--task", task, "--shard", shard]
        out, epochs = outputs.cells(task, shard), outputs.training(task, shard)
        assert main(["train", *at, "--out", out, "--training-out", epochs]) == 0
        assert main(["measure", *at, "--measure", "paths", "--out", outputs.measure_shard("paths", task, shard)]) == 0
    paths = [path for job in all_jobs(plan) for path in outputs.of(job)]
    before = {path: tables.read(Path(path)) for path in paths}
    assert all(len(table) for table in before.values())
    kept = set((tmp_path / "results" / "store").rglob("*.*"))
    shutil.rmtree(tmp_path / "results" / "shards")
    capsys.readouterr()
    assert main(["lookup", *common]) == 0
    said = capsys.readouterr().out
    assert f"{len(all_jobs(plan))} jobs looked up" in said
    assert set((tmp_path / "results" / "store").rglob("*.*")) == kept, "something was computed"
    for path, table in before.items():
        found = tables.read(Path(path))
        assert not differences(found, table)
        assert tables.about_of(found)["made"] == tables.about_of(table)["made"]


def test_a_list_of_other_jobs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, jobs = tmp_path / "config.json", tmp_path / "jobs.json"
    config.write_text(json.dumps(changed("results", str(tmp_path / "results"), TINY)))
    for text, line in [("{", "is not a list of [task, shard, measure]"), ("[]", "changed since this run was planned")]:
        jobs.write_text(text)
        assert main(["lookup", "--config", str(config), "--jobs", str(jobs), "--expect", "0" * 24]) == 2
        assert line in capsys.readouterr().err
