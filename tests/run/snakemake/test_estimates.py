"""Guards what a run is said to take: all of its jobs are in it, and complete default runs lie in the range."""

from pathlib import Path

import pytest
from plans import changed

from rankfall.run.plan import Plan, make_plan
from rankfall.run.snakemake.estimates import Estimate, InStore, estimates, needs
from rankfall.run.snakemake.jobs import PlanJobs

# Seconds of jobs of the default run by rule, on two busy cores; and what it took by the clock, there and on an idle machine.


def estimate(plan: Plan, results: Path, scale: float = 1.0) -> dict[str, Estimate]:
    return estimates(plan, PlanJobs(plan).all_jobs, InStore(plan, results), scale)


def test_what_the_store_has_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """12 minutes were said of 4 seconds of work: each job counted all of its cells."""
    plan = make_plan(changed("compute", {"shard_minutes": 60}, changed("page", False)))
    alone = estimate(plan, tmp_path)
    kept = set(plan.cells[1:])
    monkeypatch.setattr(InStore, "statuses", {cell.key: "done" for cell in kept})
    monkeypatch.setattr(InStore, "_find_measured", lambda self, name: {plan.measure_key(name, cell) for cell in kept})
    found = estimate(plan, tmp_path)
    counts = {path: cells for path, (_, _, cells) in found.items() if cells}
    assert set(counts.values()) == {1} and len(counts) == 2  # training and measuring the one that is left
    assert max(cells for _, _, cells in alone.values()) == len(plan.cells)
    (place,) = {(cell.task.name, cell.shard) for cell in plan.cells}
    assert InStore(plan, tmp_path).find_left(PlanJobs(plan).job("train", *place)) == [plan.cells[0]]


def test_a_job_with_workers_requests_for_all_of_them() -> None:
    """For no more of them than there are stacks: four groups of three seeds."""
    plans = [make_plan(changed("compute", {"shard_minutes": 60, "workers": number})) for number in (1, 3, 8)]
    for rule, most in (("train", 4), ("measure", 8)):
        jobs = [next(job for job in PlanJobs(plan).all_jobs if job.rule == rule) for plan in plans]
        one, three, eight = (needs(plan, job) for plan, job in zip(plans, jobs))
        assert (one.workers, three.workers, eight.workers) == (1, 3, most)
        assert three.megabytes == 3 * one.megabytes and eight.megabytes == most * one.megabytes
        assert one.minutes >= three.minutes >= eight.minutes > 15
