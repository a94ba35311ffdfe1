"""Guards a run's plan on disk: what has to run and why; and that a job reads its part of it and plans nothing."""

import argparse
import json
import os
import shutil
from collections.abc import Callable, Iterator
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
    config = changed("results", str(folder), config)
    run = RunPlan.make(make_plan(config), config)
    run.write()
    return run


def touch(run: RunPlan, *keys: str) -> None:
    """Empty files of these jobs, or of all."""
    for key in keys or run.jobs:
        for file in run.jobs[key].files:
            (run.results / file).parent.mkdir(parents=True, exist_ok=True)
            (run.results / file).touch()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunPlan:
    return plan_run(tmp_path_factory.mktemp("results"))


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Record of the plans that jobs make."""
    made: list[Plan] = []
    plan = rankfall.run.plan.make_plan

    def counted(source: Any) -> Plan:
        made.append(plan(source))
        return made[-1]

    monkeypatch.setattr(rankfall.run.plan, "make_plan", counted)
    return made


# What has to run, and why.


def test_cells_that_failed_are_tried_again_when_asked(tmp_path: Path) -> None:
    run = plan_run(tmp_path)
    assert run.plan is not None
    touch(run)
    store, cell = InStore(run.plan, tmp_path), run.plan.cells[0]
    store.statuses = dict.fromkeys((one.key for one in run.plan.cells), "done") | {cell.key: "failed"}
    forget_failed(run, store)
    again = {job.key for job in run.find_missing()}
    shard = f"{cell.task.name}/{cell.shard}"
    assert {f"train/{shard}", "table/cells", "table/training"} <= again
    assert again <= {
        f"data/{cell.task.name}",  # without it, the set of this seed would have no row
        f"train/{shard}",
        f"measure/paths/{shard}",
        *(f"table/{one}" for one in ("cells", "datasets", "training", "paths")),
        "figure/paths",
    }


def test_reasons_name_the_edited_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "standlab.py").write_text("def sharp(scores): return scores\n")
    config = changed("architectures/full/normaliser", "standlab:sharp", CONFIG)
    results = tmp_path / "results"
    before = plan_run(results, config)
    assert before.lines() == [], "nothing was there to compare with"
    touch(before)
    (tmp_path / "standlab.py").write_text("def sharp(scores): return -scores\n")
    now = plan_run(results, config)
    why = now.explain(now.find_missing())
    edited = {key for key, reason in why.items() if reason == "standlab.py changed"}
    assert edited == {key for key in now.jobs if key.startswith("train/")} & why.keys() != set()
    assert len(edited) < sum(key.startswith("train/") for key in now.jobs), "an edit should leave some shard alone"
    assert why["table/cells"] == "its cells, options or input files changed"
    assert any("standlab.py changed" in line for line in now.lines())
    assert before.explain(before.find_missing()) == {}


# What is written.


# What jobs read of it.


def arguments_for(run: RunPlan, job: PlannedJob) -> argparse.Namespace:
    """The arguments of a job, as the workflow gives them."""
    words = ["--config", str(run.config), "--expect", job.digest, "--results", str(run.results)]
    words += [f"--{name}={value}" for name, value in zip(NAMES.get(job.kind, ("name",)), job.names)]
    parser = argparse.ArgumentParser()
    add_arguments(parser, VERBS[job.kind].ARGUMENTS)
    return parser.parse_args(words + (["--out=x"] if job.kind != "train" else []))


def read_part(run: RunPlan, job: PlannedJob, monkeypatch: pytest.MonkeyPatch) -> _planned.Planned:
    """Return what a command reads, without running it."""
    found: list[_planned.Planned] = []
    plan = _planned.plan_job

    def stop(*words: Any, **options: Any) -> _planned.Planned:
        found.append(plan(*words, **options))
        raise KeyboardInterrupt

    monkeypatch.setattr(_planned, "plan_job", stop)
    with pytest.raises(KeyboardInterrupt):
        VERBS[job.kind].run(arguments_for(run, job))
    monkeypatch.setattr(_planned, "plan_job", plan)
    return found[0]


def test_every_job_reads_its_part_and_plans_nothing(
    run: RunPlan, plans: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run.plan is not None
    whole = {cell.key: cell for cell in run.plan.cells}
    for job in run.jobs.values():
        part = read_part(run, job, monkeypatch)
        assert not plans, f"{job.key}: planned the whole grid"
        assert part.job == job
        if job.kind in ("train", "measure"):
            cells = run.plan.shards[job.names[-2], job.names[-1]]
            assert part.plan.cells == cells
            assert [(c.code, c.cost, c.data_code) for c in part.plan.cells] == [
                (c.code, c.cost, c.data_code) for c in cells
            ]
            assert [part.plan.origin(cell) for cell in part.plan.cells] == [run.plan.origin(cell) for cell in cells]
            assert part.plan.measured_cells("paths", *job.names[-2:]) == run.plan.measured_cells(
                "paths", *job.names[-2:]
            )
        else:
            assert all(whole[cell.key] == cell for cell in part.plan.cells)
            assert len(part.plan.cells) == (len({c.data_key for c in whole.values()}) if job.kind == "data" else 0)
    assert {job.kind for job in run.jobs.values()} == set(VERBS)


def test_a_job_stops_if_a_file_of_its_digest_or_the_digest_itself_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "stoplab.py").write_text("def sharp(scores): return scores\n")
    run = plan_run(tmp_path / "results", changed("architectures/full/normaliser", "stoplab:sharp"))
    (job,) = shards(run)
    plan_train(run, job)
    with pytest.raises(RankfallError, match="changed since this run was planned"):
        plan_train(run, job, expect="0" * 24)
    (tmp_path / "stoplab.py").write_text("def sharp(scores): return -scores\n")
    with pytest.raises(RankfallError, match=r"^stoplab\.py changed since this run was planned"):
        plan_train(run, job)


SPOILT: dict[str, Callable[[Path], Any]] = {
    "missing": lambda path: path.unlink(),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-20]),
}
if os.geteuid() == 0:  # no one else can give a file away
    SPOILT["another user's"] = lambda path: os.chown(path, 65534, -1)


def shards(run: RunPlan) -> Iterator[PlannedJob]:
    return (job for job in run.jobs.values() if job.kind == "train")


def plan_train(run: RunPlan, job: PlannedJob, **options: Any) -> _planned.Planned:
    args = argparse.Namespace(**(vars(arguments_for(run, job)) | options))
    return _planned.plan_job(args, "train", *job.names, cells=[shard_file(*job.names)])


@pytest.mark.parametrize("what", SPOILT)
def test_without_its_part_of_the_plan_a_job_plans_the_whole_grid(
    what: str, plans: list[Plan], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The job plans the whole grid, says so, and goes on with the right cells. The next run mends the file."""
    run = plan_run(tmp_path)
    assert run.plan is not None
    job = next(shards(run))
    path = run.folder / shard_file(*job.names)
    before = path.read_bytes()
    SPOILT[what](path)
    plans.clear()
    own = plan_train(run, job)
    assert plans
    assert own.plan.cells == run.plan.cells
    assert "planning the whole grid instead of reading this job's part" in capsys.readouterr().err
    run.write()
    assert path.read_bytes() == before


# What jobs refuse, from the command line.


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(changed("results", str(tmp_path / "results"), CONFIG)))
    return path


@pytest.mark.long
def test_a_job_stops_with_another_package_than_planned_it(
    config_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = Path(rankfall.__file__).parent
    job = ["data", "--task", "sorting", "--config", str(config_file), "--out", str(tmp_path / "out.parquet")]
    assert main([*job, "--package", str(tmp_path / "elsewhere" / "rankfall")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(own) in line and str(tmp_path / "elsewhere" / "rankfall") in line
    assert main([*job, "--package", str(own)]) == 0


def test_a_lost_store_computes_nothing_that_the_tables_have(
    config_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plan and Snakemake agree: what is there is not computed again because the networks behind it are gone."""
    run = plan_run(tmp_path / "results", CONFIG)
    touch(run)
    shutil.rmtree(tmp_path / "results" / "store", ignore_errors=True)
    cells = len(make_plan(CONFIG).cells)
    assert main(["plan", "--config", str(config_file)]) == 0
    said = capsys.readouterr().out
    assert f"{cells} of them kept: their networks are no longer in the store" in said
    assert "to compute in" not in said
    shutil.rmtree(tmp_path / "results" / "work" / "table")
    assert main(["plan", "--config", str(config_file)]) == 0
    assert "to compute in" not in capsys.readouterr().out, "tables are combined from shards that are there"
    shutil.rmtree(tmp_path / "results" / "work" / "measure")
    shutil.rmtree(tmp_path / "results" / "work" / "figure")
    assert main(["plan", "--config", str(config_file)]) == 0
    assert f"{cells} to compute in" in capsys.readouterr().out
