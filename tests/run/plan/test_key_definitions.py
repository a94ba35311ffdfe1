"""Keys, data keys, groups and statements as they are defined, cell by cell, whatever the plan computes at once for many."""

from collections.abc import Iterable
from dataclasses import asdict
from itertools import chain
from pathlib import Path

import pytest

from rankfall.report.schema import schema
from rankfall.run.config.rules import parts
from rankfall.run.keys.files import files_of
from rankfall.run.keys.fingerprint import Sources
from rankfall.run.plan import Cell, Plan, make_plan
from rankfall.run.plan.cell import digest, spec_content, training_content
from rankfall.run.plan.cells import DATA_ROOTS, TRAIN_ROOTS, module_of
from rankfall.run.plan.engines import ROOTS
from rankfall.run.snakemake.jobs import PlanJobs

CHECKOUT = Path(__file__).parents[3]
CONFIGS = [CHECKOUT / "config.yaml", CHECKOUT / "workflow" / "presets" / "smoke.yaml"]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_keys_are_what_they_are_defined_as(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CHECKOUT)
    plan, sources = make_plan(config), Sources()
    assert [identity(cell) for cell in plan.cells] == [defined(cell, sources) for cell in plan.cells]
    order = [(*cell.labels, cell.architecture.depth, digest(cell.content), cell.seed) for cell in plan.cells]
    assert order == sorted(order)
    jobs = PlanJobs(plan)
    makers = {file: job for job in jobs.all_jobs for file in job.files}
    for table in ("cells", *plan.tables):
        for job in (makers[file] for file in jobs.job("table", table).inputs):
            if job.rule == "train":
                ceiling = sources.code_files(["rankfall.position.attainable"])
                code = dict(sorted({**rows_code(sources, "cells", "training"), **ceiling}.items()))
                assert job.digest == digest("train", rows(plan.shards[job.names]), code)
            elif job.rule == "measure":
                key, cells = plan.measures[job.names[0]].key, plan.measured_cells(*job.names)
                assert job.digest == digest("measure", key, rows(cells), rows_code(sources, table))


def rows_code(sources: Sources, *tables: str) -> dict[str, str]:
    code = sources.code_files(["rankfall.report.rows", "rankfall.report.conform"])
    return {**code, **{f"columns of {table}": schema(table).digest for table in tables}}


def identity(cell: Cell) -> tuple[str, ...]:
    return cell.spec, cell.data_key, cell.key, cell.group


def defined(cell: Cell, sources: Sources) -> tuple[str, ...]:
    """By the definitions at the top of run/plan/cell.py."""
    content = spec_content(cell.task, cell.architecture, cell.training)
    used = parts(cell.task, cell.architecture, cell.training)
    task_module = module_of("task", cell.task.task)
    roots = [*TRAIN_ROOTS, *DATA_ROOTS, task_module, *ROOTS[cell.engine]]
    roots += [module_of(kind, part) for kind, part in used]
    files = dict(chain.from_iterable(files_of(k, part, "").items() for k, part in used if k != "task"))
    data_files = files_of("task", cell.task.task, "")
    spec = digest("spec", digest(content), cell.seed)
    data = digest("data", content["task"], cell.data_seed, together(sources, [*DATA_ROOTS, task_module], data_files))
    stacked = training_content(cell.training, stacked=True)
    group = digest("group", content["task"], content["architecture"], stacked)
    return spec, data, digest(spec, together(sources, roots, files), data), group


def together(sources: Sources, roots: Iterable[str], files: dict[str, str]) -> str:
    fingerprint = sources.fingerprint(list(roots))
    return digest(fingerprint, files) if files else fingerprint


def rows(cells: list[Cell]) -> str:
    return digest([(c.key, *(digest(asdict(one)) for one in (c.task, c.architecture, c.training))) for c in cells])


def test_a_grid_with_everything_that_has_seeds_of_its_own(plan_of_seeds: Plan) -> None:
    """Excluded, added and repeated seeds, seeds that several entries share out, and a measure of some seeds."""
    sources = Sources()
    assert [identity(cell) for cell in plan_of_seeds.cells] == [defined(cell, sources) for cell in plan_of_seeds.cells]
    seeds = {depth: [c.seed for c in plan_of_seeds.cells if c.architecture.depth == depth] for depth in (1, 2, 3)}
    assert seeds == {1: [0, 1, 2, 3, 4, 5, 7, 40], 2: [0, 1, 3, 4, 40], 3: [33]}
    measured = {(c.architecture.depth, c.seed) for c in plan_of_seeds.cells if c.key in plan_of_seeds.selected["paths"]}
    assert measured == {(1, 3), (1, 40), (2, 3), (2, 40)}


@pytest.fixture
def plan_of_seeds() -> Plan:
    return make_plan(
        {
            "name": "seeds",
            "tasks": {"sorting": {"length": 5, "symbols": 6}},
            "architectures": {"soft": {"mlp": "none", "heads": 2, "width": 8}},
            "trainings": {"short": {"epochs": 2, "batch": 30}},
            "grid": [
                {
                    "task": "sorting",
                    "architecture": "soft",
                    "training": "short",
                    "depth": [1, 2],
                    "seed": [40, "0..4"],
                    "exclude": [{"depth": 2, "seed": 2}],
                    "include": [{"depth": 3, "seed": 33}],
                },
                {"task": "sorting", "architecture": "soft", "training": "short", "depth": 1, "seed": [7, 5]},
            ],
            "measures": {"paths": {"cells": {"depth": [1, 2], "seed": [3, 40]}}},
            "figures": {},
        }
    )
