"""Guards what the rules are given: files, and the digest of what each job makes, which changes with what a job depends on and
with nothing else.
"""

import json
import math
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from plans import VALID, changed

from rankfall.errors import RankfallError
from rankfall.run.plan import cost, make_plan
from rankfall.run.snakemake.job_fingerprints import JobFingerprint, JobFingerprints
from rankfall.run.snakemake.needs import SPARE
from rankfall.run.snakemake.outputs import Outputs
from rankfall.run.snakemake.wiring import Wiring

CONFIG = changed(
    "compute", {"shard_minutes": 0.003}, changed("figures", {"paths": {}}, changed("grid/0/depth", "1..6"))
)


def stated(config: Any) -> JobFingerprints:
    return JobFingerprints(make_plan(config))


def train(config: Any) -> dict[tuple[str, str], JobFingerprint]:
    fingerprints = stated(config)
    return {place: fingerprints.train(*place) for place in fingerprints.plan.shards}


def digests(config: Any) -> dict[tuple[str, str], str]:
    return {place: fingerprint.digest for place, fingerprint in train(config).items()}


def test_several_shards_are_under_test() -> None:
    assert len(Wiring(CONFIG).plan.shards) > 1


def test_statements_change_with_the_edited_file_in_the_jobs_that_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "wirelab.py"
    path.write_text("def sharp(scores): return scores\n")
    config = changed("architectures/full/normaliser", "wirelab:sharp", CONFIG)
    before = train(config)
    files = {place: dict(fingerprint.files()) for place, fingerprint in before.items()}
    path.write_text("def sharp(scores): return -scores\n")
    after = train(config)
    assert before.keys() == after.keys()
    for place, fingerprint in after.items():
        uses = "wirelab.py" in files[place]
        assert (fingerprint.digest != before[place].digest) == uses
        now = fingerprint.files()
        assert {file for file in now if now[file] != files[place].get(file)} == ({"wirelab.py"} if uses else set())
    assert any(after[place].digest == before[place].digest for place in after), "an edit should leave some job alone"


def test_statements_count_cells_and_name_files() -> None:
    plan = make_plan(CONFIG)
    for place, fingerprint in train(CONFIG).items():
        assert fingerprint.what == f"{len(plan.shards[place])} cells"
        assert "rankfall/train/fit.py" in fingerprint.files()
        record = fingerprint.record()
        assert record["made"] == fingerprint.digest
        assert json.loads(record["made_of"]) == {"what": fingerprint.what, "code": dict(fingerprint.files())}


def test_how_to_compute_changes_no_statement() -> None:
    compute = {**CONFIG["compute"], "threads": 5, "stack": 2, "checkpoint_seconds": 1}
    assert digests(changed("compute", compute, CONFIG)) == digests(CONFIG)


def test_label_changes_statements_since_rows_hold_it() -> None:
    config = changed(
        "grid/0/architecture",
        ["san", "renamed"],
        changed("architectures/renamed", VALID["architectures"]["full"], CONFIG),
    )
    before, after = digests(CONFIG), digests(config)
    assert before.keys() == after.keys()
    assert before != after


def test_added_cell_changes_its_own_shard_only() -> None:
    """Or cuts it in two."""
    more = changed("grid/0/include", [{"architecture": "san", "depth": 1, "seed": 3}], CONFIG)
    before, after = digests(CONFIG), digests(more)
    (own,) = {(cell.task.name, cell.shard) for cell in Wiring(more).plan.cells if cell.seed == 3}
    assert own in after
    assert len(before.keys() - after.keys() | {own}) <= 2
    assert all(own[1].startswith(shard) for _, shard in before.keys() - after.keys())
    assert {place for place in before.keys() & after.keys() if before[place] != after[place]} <= {own}


def test_what_is_made_of_others_follows_them() -> None:
    """A measure's options change its shards, its table and the figure of that, and nothing else."""
    before, after = stated(CONFIG), stated(changed("measures/paths/counts", [3], CONFIG))
    (task, shard), *_ = before.plan.shards
    assert "rankfall/rank/paths/measure.py" in before.measure("paths", task, shard).files()
    assert "rankfall/rank/paths/figure.py" in before.figure("paths").files()
    for kind, place in [("measure", ("paths", task, shard)), ("table", ("paths",)), ("figure", ("paths",))]:
        assert getattr(before, kind)(*place).digest != getattr(after, kind)(*place).digest, kind
    for kind, place in [("data", (task,)), ("train", (task, shard)), ("table", ("cells",)), ("table", ("datasets",))]:
        assert getattr(before, kind)(*place).digest == getattr(after, kind)(*place).digest, kind


def test_a_measure_of_tables_follows_the_tables() -> None:
    config = changed("measures", {"paths": {"counts": [2]}, "reproduction": {}}, CONFIG)
    before, after = stated(config), stated(changed("measures/paths/counts", [3], config))
    assert "paths" in before.plan.measure("reproduction").tables
    assert before.freely("reproduction").digest != after.freely("reproduction").digest


def test_a_job_that_would_make_something_else_than_planned_stops() -> None:
    (one, *_) = train(CONFIG).values()
    one.check(None, "by hand")
    one.check(one.digest, "as planned")
    with pytest.raises(
        RankfallError, match="train a: the configuration or the code changed since this run was planned"
    ):
        one.check("0123", "train a")


def test_tables_and_what_they_are_made_of() -> None:
    wiring = Wiring(CONFIG)
    assert wiring.tables == ["cells", "datasets", "paths", "training"]
    assert wiring.figures == ["paths"]
    assert wiring.figure_inputs(SimpleNamespace(figure="paths")) == ["results/tables/paths.parquet"]
    shards = [shard for _, shard in wiring.plan.shards]
    assert wiring.table_inputs(SimpleNamespace(table="paths")) == [
        f"results/shards/measure/paths/sorting/{shard}.parquet" for shard in shards
    ]
    assert wiring.table_inputs(SimpleNamespace(table="cells")) == [
        f"results/shards/train/sorting/{s}.cells.parquet" for s in shards
    ]
    assert wiring.table_inputs(SimpleNamespace(table="datasets")) == ["results/shards/data/sorting.parquet"]


def test_measure_of_some_cells_has_jobs_for_their_shards_only() -> None:
    wiring = Wiring(changed("measures/paths/cells", {"architecture": "san", "depth": 2}, CONFIG))
    files = wiring.table_inputs(SimpleNamespace(table="paths"))
    chosen = {
        cell.shard for cell in wiring.plan.cells if cell.architecture.name == "san" and cell.architecture.depth == 2
    }
    assert {Path(file).stem for file in files} == chosen
    assert len(chosen) < len(wiring.plan.shards)


def test_a_plan_is_named_by_its_content_and_never_written_again(tmp_path: Path) -> None:
    """So no other run, of this or another configuration, changes what a run's jobs read."""
    config = changed("results", str(tmp_path / "made"))
    wiring = Wiring(config)
    assert not (tmp_path / "made").exists(), "looking at a plan writes nothing"
    wiring.write_plan()
    path = wiring.config
    assert json.loads(path.read_text()) == config
    files = [file for file in path.parent.rglob("*") if file.is_file()]
    assert len(files) > 3
    for file in files:
        os.utime(file, (1, 1))
    Wiring(config).write_plan()
    assert {file.stat().st_mtime for file in files} == {1}
    other = Wiring(changed("trainings/short/lr", 0.5, config))
    other.write_plan()
    assert other.config != path
    assert {file.stat().st_mtime for file in files} == {1}
    assert json.loads(path.read_text()) == config
    assert {entry.name for entry in path.parents[1].iterdir()} == {path.parent.name, other.config.parent.name}


def test_what_may_change_without_any_result_is_given_as_paths() -> None:
    """Snakemake compares params of plain types only."""
    assert all(isinstance(place, Path) for place in Wiring(CONFIG).places.values())


def test_the_folder_of_results_is_written_as_snakemake_does() -> None:
    wiring = Wiring(changed("results", "./made//here/", CONFIG))
    assert wiring.results == "made/here"
    assert wiring.targets(SimpleNamespace())[0] == "made/here/tables/cells.parquet"


def test_a_table_of_five_thousand_shards_takes_them_from_the_plan() -> None:
    """Their paths would be half a megabyte of command line, and an argument may have 128 KiB."""
    fingerprints = stated(CONFIG)
    cells, *_ = fingerprints.plan.shards.values()
    object.__setattr__(fingerprints.plan, "shards", {("sorting", f"{number:04x}"): cells for number in range(5000)})
    began = time.perf_counter()
    parts = fingerprints.parts("paths", Outputs("results"))
    assert len(parts) == len({part.path for part in parts}) == 5000
    assert sum(len(part.path) for part in parts) > 128 * 1024
    assert fingerprints.table("paths").what == "5000 files"
    assert time.perf_counter() - began < 20, "some milliseconds a shard would be too long"


def test_limits_grow_with_the_attempt() -> None:
    wiring = Wiring(CONFIG)
    (task, shard), *_ = wiring.plan.shards
    job = SimpleNamespace(task=task, shard=shard)
    assert wiring.train_minutes(job, attempt=2) == 2 * wiring.train_minutes(job)
    assert wiring.train_memory(job) > 1000
    asked = SimpleNamespace(task=task, shard=shard, measure="paths")
    cells = wiring.plan.measured_cells("paths", task, shard)
    seconds = wiring.plan.measure("paths").cost["seconds"]
    assert wiring.measure_minutes(asked) == 15 + math.ceil(3 * len(cells) * seconds / 60)


def test_the_longest_job_of_a_kind_comes_first() -> None:
    """And networks before measures, whatever they take."""
    wiring = Wiring(changed("compute", {"shard_minutes": 0.1}, CONFIG))
    jobs = [SimpleNamespace(task=task, shard=shard, measure="paths") for task, shard in wiring.plan.shards]

    def seconds(job: SimpleNamespace) -> float:
        return sum(cell.cost.seconds for cell in wiring.plan.shard(job.task, job.shard))

    def cells(job: SimpleNamespace) -> int:
        return len(wiring.plan.measured_cells("paths", job.task, job.shard))

    trained, measured = max(jobs, key=wiring.train_priority), max(jobs, key=wiring.measure_priority)
    assert seconds(trained) == max(map(seconds, jobs)) > min(map(seconds, jobs))
    assert cells(measured) == max(map(cells, jobs)) > min(map(cells, jobs))
    assert all(1 <= wiring.measure_priority(job) < 2 < 3 <= wiring.train_priority(job) < 4 for job in jobs)


def test_untrained_networks_ask_for_no_memory_to_train_in() -> None:
    """Ninety-six layers, looked at: their states, not what a gradient needs; and no more members than there are seeds."""
    deep = changed(
        "grid", [{"task": "sorting", "architecture": "san", "training": ["short", "init"], "depth": 96, "seed": [0, 1]}]
    )
    deep |= {"measures": {}, "figures": {}}
    wiring = Wiring(changed("tasks/sorting/train", 10000, changed("trainings/short/batch", 256, deep)))
    memory = {}
    for name in ("short", "init"):
        cells = [cell for cell in wiring.plan.cells if cell.training.name == name]
        memory[name] = cost.member_megabytes(cells[0].task, cells[0].architecture, cells[0].training)
    assert memory["init"] * 5 < memory["short"]
    most = cost.PROCESS + SPARE + 2 * max(memory.values())
    assert all(wiring.train_memory(SimpleNamespace(task=t, shard=s)) <= most for t, s in wiring.plan.shards)
