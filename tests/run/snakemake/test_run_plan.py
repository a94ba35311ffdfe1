"""Guards a run's plan on disk: a job reads its part of it and plans nothing; and one run at a time works on a folder of results."""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from plans import changed

import rankfall.run.plan
from rankfall.cli import main
from rankfall.commands import _planned, data, figure, measure, table, train
from rankfall.commands._planned import add_arguments
from rankfall.commands.run import forget_failed
from rankfall.errors import RankfallError
from rankfall.run.plan import Plan, make_plan
from rankfall.run.plan.written import shard_file
from rankfall.run.snakemake import storage
from rankfall.run.snakemake.estimates import InStore
from rankfall.run.snakemake.jobs import PlannedJob
from rankfall.run.snakemake.run_plan import RunPlan

CONFIG = changed(
    "compute", {"shard_minutes": 0.003}, changed("figures", {"paths": {}}, changed("grid/0/depth", "1..6"))
)
SEEDS = changed("grid/0/include", [{"depth": 2, "seed": [50, 90]}], changed("grid/0/seed", "0..2", CONFIG))
SOME = changed("measures/paths/cells", {"depth": [1, 2], "seed": [1, 50]}, SEEDS)
VERBS: dict[str, Any] = {"train": train, "measure": measure, "data": data, "table": table, "figure": figure}
NAMES = {"train": ("task", "shard"), "measure": ("measure", "task", "shard"), "data": ("task",)}


def plan_run(folder: Path, config: Any = SOME) -> RunPlan:
    run = RunPlan.make(make_plan(config), config, folder)
    run.write()
    return run


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Record the plans that jobs make."""
    made: list[Plan] = []
    monkeypatch.setattr(rankfall.run.plan, "make_plan", lambda source: made.append(make_plan(source)) or made[-1])
    return made


def test_cells_that_failed_are_tried_again_when_asked(tmp_path: Path) -> None:
    run = plan_run(tmp_path)
    assert run.plan is not None
    for file in run.makers:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    store, cell = InStore(run.plan, tmp_path), run.plan.cells[0]
    store.statuses = dict.fromkeys((cell.key for cell in run.plan.cells), "done") | {cell.key: "failed"}
    forget_failed(run, store)
    missing = {job.key for job in run.find_missing()}
    shard = f"{cell.task.name}/{cell.shard}"
    assert {f"train/{shard}", "table/cells", "table/training"} <= missing
    data = f"data/{cell.task.name}"  # without it, the set of this seed would have no row
    others = {data, f"measure/paths/{shard}", "table/datasets", "table/paths", "figure/paths"}
    assert missing <= {f"train/{shard}", "table/cells", "table/training"} | others


def arguments_for(run: RunPlan, job: PlannedJob, **more: Any) -> argparse.Namespace:
    """Return the arguments of a job, as the workflow gives them."""
    words = ["--config", str(run.config), "--expect", job.digest, "--results", str(run.results)]
    words += [f"--{name}={value}" for name, value in zip(NAMES.get(job.kind, ("name",)), job.names)]
    parser = argparse.ArgumentParser()
    add_arguments(parser, VERBS[job.kind].ARGUMENTS)
    return argparse.Namespace(**vars(parser.parse_args(words + ["--out=x"] * (job.kind != "train"))) | more)


def test_every_job_reads_its_part_and_plans_nothing(
    tmp_path: Path, plans: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, parts, plan_job = plan_run(tmp_path), list[_planned.Planned](), _planned.plan_job
    assert run.plan is not None

    def stop(*arguments: Any, **options: Any) -> None:
        parts.append(plan_job(*arguments, **options))
        raise KeyboardInterrupt

    monkeypatch.setattr(_planned, "plan_job", stop)
    cells_of_run = {cell.key: cell for cell in run.plan.cells}
    for job in run.jobs.values():
        with pytest.raises(KeyboardInterrupt):
            VERBS[job.kind].run(arguments_for(run, job))
        part = parts[-1]
        assert not plans, f"{job.key}: planned the whole grid"
        assert part.job == job
        if job.kind in ("train", "measure"):
            expected = run.plan.shards[job.names[-2], job.names[-1]]
            assert part.plan.cells == expected
            for cell, other in zip(part.plan.cells, expected):
                assert (cell.code, cell.cost, cell.data_code) == (other.code, other.cost, other.data_code)
                assert part.plan.origin(cell) == run.plan.origin(other)
            measured = (plan.measured_cells("paths", *job.names[-2:]) for plan in (part.plan, run.plan))
            assert next(measured) == next(measured)
        else:
            assert all(cells_of_run[cell.key] == cell for cell in part.plan.cells)
            count = len({cell.data_key for cell in run.plan.cells}) if job.kind == "data" else 0
            assert len(part.plan.cells) == count
    assert {job.kind for job in run.jobs.values()} == set(VERBS)


def plan_train(run: RunPlan, job: PlannedJob, **options: Any) -> _planned.Planned:
    return _planned.plan_job(arguments_for(run, job, **options), "train", *job.names, cells=[shard_file(*job.names)])


def test_a_job_stops_if_a_file_of_its_digest_or_the_digest_itself_is_another(lab: Path) -> None:
    (lab / "stoplab.py").write_text("def sharp(scores): return scores\n")
    run = plan_run(lab / "results", changed("architectures/full/normaliser", "stoplab:sharp"))
    (job,) = (job for job in run.jobs.values() if job.kind == "train")
    plan_train(run, job)
    with pytest.raises(RankfallError, match="changed since this run was planned"):
        plan_train(run, job, expect="0" * 24)
    (lab / "stoplab.py").write_text("def sharp(scores): return -scores\n")
    with pytest.raises(RankfallError, match=r"^stoplab\.py changed since this run was planned"):
        plan_train(run, job)


SPOIL: dict[str, Callable[[Path], Any]] = {
    "missing": lambda path: path.unlink(),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-20]),
}
if os.geteuid() == 0:  # no one else can give a file away
    SPOIL["another user's"] = lambda path: os.chown(path, 65534, -1)


@pytest.mark.parametrize("how", SPOIL)
def test_without_its_part_of_the_plan_a_job_plans_the_whole_grid(
    how: str, plans: list[Plan], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The job plans the whole grid, says so, and goes on with the right cells. The next run mends the file."""
    run = plan_run(tmp_path)
    job = next(job for job in run.jobs.values() if job.kind == "train")
    path = run.folder / shard_file(*job.names)
    before = path.read_bytes()
    SPOIL[how](path)
    part = plan_train(run, job)
    assert plans and run.plan is not None and part.plan.cells == run.plan.cells
    assert "planning the whole grid instead of reading this job's part" in capsys.readouterr().err
    run.write()
    assert path.read_bytes() == before


@pytest.mark.long
def test_a_job_stops_with_another_package_than_planned_it(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (lab / "config.json").write_text(json.dumps(CONFIG))
    package, other = Path(rankfall.__file__).parent, lab / "elsewhere" / "rankfall"
    job = ["data", "--task", "sorting", "--config", "config.json", "--out", "out.parquet", "--package"]
    assert main([*job, str(other)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(package) in line and str(other) in line
    assert main([*job, str(package)]) == 0


HOLD = """
import sys, time
from pathlib import Path
from rankfall.run.snakemake.storage import lock_results
lock_results(Path(sys.argv[1]))
print("locked", flush=True)
time.sleep(600)
"""


@pytest.mark.long
def test_a_second_run_is_refused_until_the_first_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left to remove when a run has ended, however it did."""
    monkeypatch.setattr(storage, "_held", [])
    other = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None and other.stdout.readline() == "locked\n"
        message = f"another run works on {tmp_path}: wait for it; `rankfall status --watch"
        with pytest.raises(RankfallError, match=message):
            storage.lock_results(tmp_path)
    finally:
        other.kill()
        other.communicate()
    storage.lock_results(tmp_path)
