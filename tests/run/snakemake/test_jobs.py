"""Guards the digests of jobs, which are in the names of their files: one changes with what its job depends on, and with nothing else; and
what jobs ask for."""

from pathlib import Path
from typing import Any

import pytest
from plans import VALID, changed

from rankfall.report import quantities
from rankfall.run.plan import make_plan
from rankfall.run.snakemake.estimates import needs
from rankfall.run.snakemake.jobs import PlanJobs

MEASURE = "TABLE = 'wiredlab.drift'\ndef measure(context): return [{'layer': 0, 'drift': 1.0}]\n"
SHOWN = """
from rankfall import Column, Table

def columns() -> Table:
    columns = Column("layer", "int", "0 is the embedding"), Column("drift", "float", "distance", unit="1")
    return Table("wiredlab.drift", "a layer", columns, key=("layer",))

CAPTION = "How far states move"
"""


# A text, what stands there after an edit, and whether the rows are measured again, and the table combined again.
EDITS = (
    ("How far states move", "How states move", False, False),  # what is shown of the rows
    ('"distance", unit="1"', '"how far", unit="rad"', False, True),  # the file of the table has the descriptions
    ('"drift", "float"', '"drift", "int"', True, True),
    ('unit="1"', 'unit="1", bounds=(0, None)', True, True),
    ('key=("layer",)', 'key=("layer", "drift")', True, True),
)


def test_rows_follow_the_declared_table_and_not_the_file_that_declares_it(
    lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quantities, "_USER_QUANTITIES", [])  # the plan makes the table known to this process
    folder = lab / "wiredlab" / "drift"
    folder.mkdir(parents=True)
    for name, text in {"__init__.py": "", "measure.py": MEASURE, "shown.py": SHOWN}.items():
        (folder / name).write_text(text)

    def digests() -> tuple[str, str]:
        jobs = PlanJobs(make_plan(changed("measures", {"drift": {"measure": "wiredlab.drift"}})))
        (place,) = jobs.plan.shards
        return jobs.job("measure", "drift", *place).digest, jobs.job("table", "wiredlab.drift").digest

    first = digests()
    for before, after, measures, combines in EDITS:
        assert before in SHOWN
        (folder / "shown.py").write_text(SHOWN.replace(before, after))
        second = digests()
        assert (first[0] != second[0], first[1] != second[1]) == (measures, combines), after


def test_an_edit_of_a_label_or_colour_draws_anew_and_trains_nothing() -> None:
    labels = {"san": "attention alone", "softmax": "soft-max", "short": "two epochs"}
    shown: dict[str, Any] = {"labels": labels, "colours": {"san": "#123456", "full": "teal"}, "figures": {"paths": {}}}
    before = PlanJobs(make_plan(VALID | shown))
    assert before.plan.colours == {"san": "#123456", "full": "#008080"}
    for path, value in (("labels/san", "only attention"), ("colours/full", "#654321")):
        after = PlanJobs(make_plan(changed(path, value, VALID | shown)))
        assert [cell.key for cell in before.plan.cells] == [cell.key for cell in after.plan.cells]
        jobs = (("table", "paths"), ("figure", "paths"), ("page",))
        assert [before.job(*job).digest == after.job(*job).digest for job in jobs] == [True, False, False]


def test_a_measure_of_tables_reads_what_is_made_and_waits_for_it() -> None:
    jobs = PlanJobs(make_plan(changed("measures", {"paths": {}, "reproduction": {}})))
    assert jobs.plan.measures["reproduction"].tables == ("cells", "paths")
    measure = jobs.job("measure", "reproduction")
    assert measure.inputs == tuple(jobs.job("table", name).files[0] for name in ("cells", "paths"))
    assert jobs.job("table", "reproduction").inputs == tuple(measure.files)
    alone = PlanJobs(make_plan(changed("measures", {"reproduction": {}})))
    assert alone.job("measure", "reproduction").inputs == tuple(alone.job("table", "cells").files)  # every run makes it


def test_a_job_with_workers_requests_for_all_of_them() -> None:
    """For no more of them than there are stacks: four groups of three seeds."""
    plans = [make_plan(changed("compute", {"shard_minutes": 60, "workers": number})) for number in (1, 3, 8)]
    for rule, most in (("train", 4), ("measure", 8)):
        jobs = [next(job for job in PlanJobs(plan).all_jobs if job.rule == rule) for plan in plans]
        one, three, eight = (needs(plan, job) for plan, job in zip(plans, jobs))
        assert (one.workers, three.workers, eight.workers) == (1, 3, most)
        assert three.megabytes == 3 * one.megabytes and eight.megabytes == most * one.megabytes
        assert one.minutes >= three.minutes >= eight.minutes > 15
