"""A run's plan on disk: a job makes its own part of it and gets what it would get from the whole, or plans the whole."""

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from plans import changed

import rankfall.run.plan
from rankfall.commands import _planned, data, figure, lookup, measure, table, train
from rankfall.errors import RankfallError
from rankfall.run.plan import Plan
from rankfall.run.plan.written import DamagedPlan, WrittenPlan, read_sealed, seal
from rankfall.run.snakemake.job_fingerprints import JobFingerprint
from rankfall.run.snakemake.lookups import ShardJob
from rankfall.run.snakemake.outputs import Outputs
from rankfall.run.snakemake.wiring import Wiring

CONFIG = changed(
    "compute", {"shard_minutes": 0.003}, changed("figures", {"paths": {}}, changed("grid/0/depth", "1..6"))
)
SEEDS = changed("grid/0/include", [{"depth": 2, "seed": [50, 90]}], changed("grid/0/seed", "0..2", CONFIG))
SOME = changed("measures/paths/cells", {"depth": [1, 2], "seed": [1, 50]}, SEEDS)
VERBS: dict[str, Any] = {"train": train, "measure": measure, "data": data, "table": table, "figure": figure}


@pytest.fixture(scope="module")
def wiring(tmp_path_factory: pytest.TempPathFactory) -> Wiring:
    made = Wiring(changed("results", str(tmp_path_factory.mktemp("results")), SOME))
    made.write_plan()
    return made


@pytest.fixture
def grids(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each plan that is made, whether it was of the whole grid."""
    seen: list[bool] = []
    plan = rankfall.run.plan.make_plan

    def counted(source: Any, only: Any = None) -> Plan:
        seen.append(only is None)
        return plan(source, only)

    monkeypatch.setattr(rankfall.run.plan, "make_plan", counted)
    return seen


def asked(wiring: Wiring, verb: str, fingerprint: JobFingerprint, **options: Any) -> argparse.Namespace:
    """The arguments of a job, as the workflow gives them."""
    words = ["--config", str(wiring.config), "--expect", fingerprint.digest, "--results", wiring.results]
    words += [f"--{name}={value}" for name, value in options.items()]
    parser = argparse.ArgumentParser()
    VERBS[verb].add_arguments(parser)
    return parser.parse_args(words + (["--out=x"] if verb != "train" else []))


def jobs(wiring: Wiring) -> Iterator[tuple[str, dict[str, str], JobFingerprint]]:
    said, plan = wiring.fingerprints, wiring.plan
    for task, shard in plan.shards:
        yield "train", {"task": task, "shard": shard}, said.train(task, shard)
        if plan.measured_cells("paths", task, shard):
            yield "measure", {"measure": "paths", "task": task, "shard": shard}, said.measure("paths", task, shard)
    yield "data", {"task": "sorting"}, said.data("sorting")
    yield from (("table", {"name": name}, said.table(name)) for name in said.tables)
    yield "figure", {"name": "paths"}, said.figure("paths")


def own_of(verb: str, args: argparse.Namespace, monkeypatch: pytest.MonkeyPatch) -> _planned.Planned:
    """What a command plans, and no more of the command."""
    found: list[_planned.Planned] = []
    plan = _planned.make_plan

    def stop(*given: Any) -> _planned.Planned:
        found.append(plan(*given))
        raise KeyboardInterrupt

    monkeypatch.setattr(_planned, "make_plan", stop)
    with pytest.raises(KeyboardInterrupt):
        VERBS[verb].run(args)
    monkeypatch.setattr(_planned, "make_plan", plan)
    return found[0]


def test_every_job_makes_its_own_part_and_no_other(
    wiring: Wiring, grids: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {cell.key: cell for cell in wiring.plan.cells}
    seen = set()
    for verb, options, fingerprint in jobs(wiring):
        own = own_of(verb, asked(wiring, verb, fingerprint, **options), monkeypatch)
        seen.add(verb)
        assert grids == [False], f"{verb} {options}: planned the whole grid"
        grids.clear()
        assert own.written is not None
        if verb in ("train", "measure"):
            cells = wiring.plan.shard(options["task"], options["shard"])
            assert own.plan.cells == cells
            assert [(c.code, c.cost, c.data_code) for c in own.plan.cells] == [
                (c.code, c.cost, c.data_code) for c in cells
            ]
            assert [own.plan.origin(cell) for cell in own.plan.cells] == [wiring.plan.origin(cell) for cell in cells]
        else:
            assert all(whole[cell.key] == cell for cell in own.plan.cells)
            assert len(own.plan.cells) == (len({c.data_key for c in whole.values()}) if verb == "data" else 0)
        if verb == "table":
            outputs = Outputs.under(wiring.results)
            planned = wiring.fingerprints.parts(options["name"], outputs)
            read = own.fingerprints.parts(options["name"], own.outputs)
            assert [(p.path, p.made, p.job, p.keys) for p in read] == [(p.path, p.made, p.job, p.keys) for p in planned]
    assert seen == set(VERBS)


def test_looked_up_jobs_read_their_shards_alone(wiring: Wiring, grids: list[bool], tmp_path: Path) -> None:
    some = [ShardJob(*place) for place in list(wiring.plan.shards)[:2]]
    (tmp_path / "jobs.json").write_text(json.dumps(some))
    args = asked(wiring, "train", wiring.fingerprints.lookup(some), task="", shard="")
    listed = lookup.read_listed_jobs(tmp_path / "jobs.json")
    own = _planned.make_plan(
        args, lambda written: written.shards(job.place for job in listed), lambda s: s.lookup(listed)
    )
    assert grids == [False]
    assert own.plan.cells == [cell for job in some for cell in wiring.plan.shard(*job.place)]


def edit(path: Path, change: Callable[[Any], Any]) -> None:
    """A whole file, with other content."""
    path.write_bytes(seal(change(read_sealed(path))))


def other_seed(content: Any) -> Any:
    content["series"][0][2][0] += 1000
    return content


def other_number(content: Any) -> Any:
    content["series"][0][1] = 10**6
    return content


def other_network(content: Any) -> Any:
    content["series"][0][1] = (content["series"][0][1] + 1) % 2
    return content


SPOILT: dict[str, Callable[[Path], Any]] = {
    "missing": lambda path: path.unlink(),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "a letter is another": lambda path: path.write_bytes(path.read_bytes().replace(b"grid.0", b"grid.1", 1)),
    "empty": lambda path: path.write_bytes(b""),
    "no text": lambda path: path.write_bytes(b"\xff" * 40),
    "of other cells": lambda path: edit(path, other_seed),
    "of other networks": lambda path: edit(path, other_network),
    "of another grid": lambda path: edit(path, other_number),
    "no slice": lambda path: path.write_bytes(seal(["nothing"])),
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_slice_that_is_not_the_planned_one_is_not_used(
    what: str, wiring: Wiring, grids: list[bool], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stale or damaged: the job plans the whole grid, says so, and goes on with the right cells. The next run mends the file."""
    mine = Wiring(changed("results", str(tmp_path), SOME))
    mine.write_plan()
    place = next(iter(mine.plan.shards))
    path = WrittenPlan(mine.config.parent).shard_file(*place)
    before = path.read_bytes()
    SPOILT[what](path)
    grids.clear()
    args = asked(mine, "train", mine.fingerprints.train(*place), task=place[0], shard=place[1])
    own = _planned.make_plan(args, lambda written: written.shard(*place), lambda said: said.train(*place))
    assert grids[-1] is True and own.written is None
    assert own.plan.shard(*place) == mine.plan.shard(*place)
    assert "planning the whole grid instead of this job's part" in capsys.readouterr().err
    mine.write_plan()
    assert path.read_bytes() == before


def test_a_job_of_an_edited_configuration_or_of_other_code_stops(
    wiring: Wiring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a slice says is not asked: its cells have the keys of the configuration and the code that the job finds."""
    mine = Wiring(changed("results", str(tmp_path), SOME))
    mine.write_plan()
    place = next(iter(mine.plan.shards))
    fingerprint = mine.fingerprints.train(*place)
    args = asked(mine, "train", fingerprint, task=place[0], shard=place[1])

    def plan() -> _planned.Planned:
        return _planned.make_plan(args, lambda written: written.shard(*place), lambda said: said.train(*place))

    plan().check(plan().fingerprints.train(*place), "train")
    text = mine.config.read_text()
    mine.config.write_text(json.dumps(changed("trainings/short/lr", 0.25, json.loads(text))))
    with pytest.raises(RankfallError, match="changed since this run was planned"):
        plan().check(plan().fingerprints.train(*place), "train")
    mine.config.write_text(text)
    fingerprint = "rankfall.run.keys.fingerprint.Sources.fingerprint"
    monkeypatch.setattr(fingerprint, lambda self, roots: "other code")
    with pytest.raises(RankfallError, match="changed since this run was planned"):
        plan().check(plan().fingerprints.train(*place), "train")


def test_who_is_told_nothing_plans_everything(wiring: Wiring, grids: list[bool]) -> None:
    """By hand, with the run's own configuration but no digest to compare with; or with another file."""
    place = next(iter(wiring.plan.shards))
    args = asked(wiring, "train", wiring.fingerprints.train(*place), task=place[0], shard=place[1])
    for given in ({"expect": None}, {"config": wiring.config.with_name("other.json")}):
        (wiring.config.with_name("other.json")).write_text(wiring.config.read_text())
        by_hand = argparse.Namespace(**(vars(args) | given))
        own = _planned.make_plan(by_hand, lambda written: written.shard(*place), lambda said: said.train(*place))
        assert len(own.plan.cells) == len(wiring.plan.cells)
    assert grids == [True, True]


def test_a_job_of_a_cluster_reads_instead_of_planning(wiring: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that Snakemake asks when it parses the workflow for one job of a shard is what the run said."""
    monkeypatch.setattr("rankfall.run.snakemake.wiring.make_plan", None)
    job = Wiring(json.loads(wiring.config.read_text()), False, wiring.config)
    assert (job.places, job.threads, job.name) == (wiring.places, wiring.threads, wiring.name)
    for task, shard in wiring.plan.shards:
        at = SimpleNamespace(task=task, shard=shard, measure="paths")
        for name in ("train", "train_priority", "train_minutes", "train_memory"):
            assert getattr(job, name)(at) == getattr(wiring, name)(at), name
        assert job.train_inputs(at) == job.measure_inputs(at) == []
        if wiring.plan.measured_cells("paths", task, shard):
            for name in ("measure", "measure_priority", "measure_minutes", "measure_memory"):
                assert getattr(job, name)(at) == getattr(wiring, name)(at), name


def test_a_plan_of_another_configuration_is_not_read(wiring: Wiring) -> None:
    """An option of the command line, or a file that was edited: then it is planned as it is."""
    other = changed("trainings/short/lr", 0.25, json.loads(wiring.config.read_text()))
    assert Wiring(other, False, wiring.config).written is None
    assert Wiring(json.loads(wiring.config.read_text()), True, wiring.config).written is None, "the run itself plans"


def test_two_runs_that_write_one_plan_at_once_leave_it_whole(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    config = changed("results", str(tmp_path), SOME)
    both = [Wiring(config), Wiring(config)]
    assert both[0].config == both[1].config
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: both[number % 2].write_plan(), range(12)))
    written = WrittenPlan(both[0].config.parent)
    assert not list(tmp_path.rglob("*.tmp"))
    assert written.about["jobs"] and all(written.shard(*place).keys for place in both[0].plan.shards)


def test_a_plan_of_other_code_lies_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the jobs of a run never read what another version has planned."""
    config = changed("results", str(tmp_path), SOME)
    before = Wiring(config).config
    monkeypatch.setattr("rankfall.run.keys.fingerprint.Sources.fingerprint", lambda self, roots: "other code")
    assert Wiring(config).config != before


def test_what_is_not_sealed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DamagedPlan, match="cannot be read"):
        read_sealed(tmp_path / "nothing")
    (tmp_path / "one").write_text("\n{}\n")
    with pytest.raises(DamagedPlan, match="not as it was written"):
        read_sealed(tmp_path / "one")
