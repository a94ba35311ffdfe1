"""Guards the digests of jobs, which are in the names of their files: one changes with what its job depends on, and with nothing else."""

from pathlib import Path
from typing import Any

import pytest
from plans import changed

from rankfall.report import quantities
from rankfall.run.plan import make_plan
from rankfall.run.snakemake.jobs import PlanJobs, PlannedJob

CONFIG = changed(
    "compute", {"shard_minutes": 0.003}, changed("figures", {"paths": {}}, changed("grid/0/depth", "1..6"))
)


def planned(config: Any) -> PlanJobs:
    return PlanJobs(make_plan(config))


def train(config: Any) -> dict[tuple[str, str], PlannedJob]:
    jobs = planned(config)
    return {place: jobs.job("train", *place) for place in jobs.plan.shards}


def digests(config: Any) -> dict[tuple[str, str], str]:
    return {place: job.digest for place, job in train(config).items()}


def test_digests_change_with_the_edited_file_in_the_jobs_that_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "wirelab.py"
    path.write_text("def sharp(scores): return scores\n")
    config = changed("architectures/full/normaliser", "wirelab:sharp", CONFIG)
    before = train(config)
    files = {place: dict(job.code()) for place, job in before.items()}
    path.write_text("def sharp(scores): return -scores\n")
    after = train(config)
    assert before.keys() == after.keys()
    for place, job in after.items():
        uses = "wirelab.py" in files[place]
        assert (job.digest != before[place].digest) == uses
        now = job.code()
        assert {file for file in now if now[file] != files[place].get(file)} == ({"wirelab.py"} if uses else set())
    assert any(after[place].digest == before[place].digest for place in after), "an edit should leave some job alone"


def test_added_cell_changes_its_own_shard_only() -> None:
    """Or cuts it in two."""
    more = changed("grid/0/include", [{"architecture": "san", "depth": 1, "seed": 3}], CONFIG)
    before, after = digests(CONFIG), digests(more)
    (own,) = {(cell.task.name, cell.shard) for cell in make_plan(more).cells if cell.seed == 3}
    assert own in after
    assert len(before.keys() - after.keys() | {own}) <= 2
    assert all(own[1].startswith(shard) for _, shard in before.keys() - after.keys())
    assert {place for place in before.keys() & after.keys() if before[place] != after[place]} <= {own}


MEASURE = "TABLE = 'wiredlab.drift'\ndef measure(context): return [{'layer': 0, 'drift': 1.0}]\n"
SHOWN = """
from rankfall import Column, Table

def columns() -> Table:
    columns = Column("layer", "int", "0 is the embedding"), Column("drift", "float", "distance", unit="1")
    return Table("wiredlab.drift", "a layer", columns, key=("layer",))

CAPTION = "How far states move"
"""


@pytest.mark.parametrize(
    ("before", "after", "measures", "combines"),
    [
        ("How far states move", "How states move", False, False),  # what is shown of the rows
        ('"distance", unit="1"', '"how far", unit="rad"', False, True),  # the file of the table has the descriptions
        ('"drift", "float"', '"drift", "int"', True, True),
        ('unit="1"', 'unit="1", bounds=(0, None)', True, True),
        ('key=("layer",)', 'key=("layer", "drift")', True, True),
    ],
)
def test_rows_follow_the_declared_table_and_not_the_file_that_declares_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str, measures: bool, combines: bool
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(quantities, "_USER_QUANTITIES", [])  # the plan makes the table known to this process
    folder = tmp_path / "wiredlab" / "drift"
    folder.mkdir(parents=True)
    for name, text in {"__init__.py": "", "measure.py": MEASURE, "shown.py": SHOWN}.items():
        (folder / name).write_text(text)
    config = changed("measures", {"drift": {"measure": "wiredlab.drift"}}, changed("figures", {}, CONFIG))

    def digests() -> tuple[str, str]:
        jobs = planned(config)
        (task, shard), *_ = jobs.plan.shards
        return jobs.job("measure", "drift", task, shard).digest, jobs.job("table", "wiredlab.drift").digest

    first = digests()
    assert before in SHOWN
    (folder / "shown.py").write_text(SHOWN.replace(before, after))
    second = digests()
    assert (first[0] != second[0], first[1] != second[1]) == (measures, combines)
