"""Guards what tables of data sets, cells and epochs say of what was made, that the code that says it is in the key of each file, and that
the configuration shown for a cell computes that very cell."""

import math
from typing import Any

import pytest
from plans import VALID

from rankfall.report.provenance import snippet
from rankfall.report.rows import cell_columns, cell_row, epoch_rows, measured_rows
from rankfall.run.plan import make_plan
from rankfall.run.plan.cell import Cell
from rankfall.run.snakemake.jobs import PlanJobs
from rankfall.yaml_text import load

DONE: dict[str, Any] = {"status": "done", "steps": 7, "chance": 0.5, "seconds": 2.0}
FAILED = {"status": "failed", "reason": "loss is not finite"}


@pytest.fixture(scope="module")
def plan() -> Any:
    return make_plan(VALID)


def test_a_cell_ends_with_what_its_record_says(plan: Any) -> None:
    final = {"train": {"loss": 0.1, "accuracy": 0.9}, "test": {"loss": 0.3}, "long": {"loss": 9.0}}
    row = cell_row(plan.cells[0], DONE | {"final": final}, (1.0, ""))
    ends = [row[f"{split}_{metric}"] for split in ("train", "test") for metric in ("loss", "accuracy")]
    assert ends[:3] == [0.1, 0.9, 0.3] and math.isnan(ends[3])
    assert (row["key"], row["steps"], row["chance"], row["seconds"]) == (plan.cells[0].key, 7, 0.5, 2.0)
    failed = cell_row(plan.cells[0], FAILED, (1.0, ""))
    assert failed["reason"] == "loss is not finite" and "test_loss" not in failed and failed["steps"] is None


def test_a_split_that_is_evaluated_at_the_end_stands_at_the_last_epoch(plan: Any) -> None:
    course = [(1, "train", "loss", 2.0), (2, "train", "loss", 1.0)]
    rows = epoch_rows(
        plan.cells[0], DONE | {"final": {"train": {"loss": 1.5}, "long": {"accuracy": 0.25}}}, iter(course)
    )
    words = [(row["epoch"], row["split"], row["metric"], row["value"]) for row in rows]
    assert words == [*course, (2, "long", "accuracy", 0.25)]
    assert {row["key"] for row in rows} == {plan.cells[0].key}


def test_measured_rows_are_of_cells_that_are_done_and_of_no_others(plan: Any) -> None:
    cell = plan.cells[0]
    assert measured_rows(cell, DONE, [{"layer": 1}, {"layer": 2}]) == [
        cell_columns(cell, DONE) | {"layer": n} for n in (1, 2)
    ]
    elsewhere = measured_rows(cell, DONE | {"processor": "a"}, [{"layer": 1, "processor": one} for one in "ab"])
    assert [row["processor"] for row in elsewhere] == ["a", "a; measured on b"]
    assert measured_rows(cell, FAILED, None) == [cell_columns(cell, FAILED)]
    for record, result in ((DONE, None), (FAILED, [{"layer": 1}])):
        with pytest.raises(AssertionError, match="measured"):
            measured_rows(cell, record, result)


def test_every_file_of_rows_is_made_anew_when_the_code_of_rows_is_edited(plan: Any) -> None:
    jobs = [job for job in PlanJobs(plan).all_jobs if job.kind in ("data", "train", "measure", "table")]
    rows = {f"rankfall/report/{name}.py" for name in ("rows", "conform", "schema")}
    assert jobs and not [job.key for job in jobs if not rows <= set(job.code)]


CONFIG = {
    "tasks": {"sorting": {"train": 60, "length": 5}, "words": {"task": "memorization", "train": 20, "test": 10}},
    "architectures": {
        "served": {"residual": "none"},
        "skip": {"normaliser": {"name": "l2"}, "residual": {"name": "scaled", "scale": 0.1}},
        "gated": {
            "attention": {"name": "gau", "key_width": 8},
            "mlp": "gelu",
            "position": {"name": "rope", "base": 100.0},
        },
    },
    "trainings": {"init": {"epochs": 0}, "short": {"epochs": 2, "lr": 0.01, "clip": 1.0, "schedule": "cosine"}},
}
NAMES = {"task": ["sorting", "words"], "architecture": ["served", "skip", "gated"], "training": ["init", "short"]}
CONFIG["grid"] = [NAMES | {"seed": 3}]
ENGINES = {engine: make_plan(CONFIG | {"compute": {"engine": engine}}) for engine in ("auto", "plain")}
PLAN = ENGINES["auto"]


@pytest.mark.parametrize(
    ("engine", "cell"),
    [*(("auto", cell) for cell in PLAN.cells), ("plain", ENGINES["plain"].cells[0])],
    ids=lambda case: case if isinstance(case, str) else "-".join(case.labels),
)
def test_the_snippet_is_of_this_cell(engine: str, cell: Cell) -> None:
    """By whichever engine it was trained: each makes another key."""
    about = {"status": "done", "reason": "", "device": "cpu", "versions": {"torch": "2"}, "seconds": 1.5}
    text = snippet(PLAN.origin(cell) | about)
    again = make_plan(load(text))
    assert [planned.key for planned in again.cells] == [cell.key]
    assert again.cells[0].labels == cell.labels
