"""Publish files such as `results/tables/residuals.parquet`, and find the reasons why others are missing.

Published files are copies of work files, written at the end of every run, even a failed one. They are copies, not links, so that an edit of
a table does not change the work file that other jobs read.
"""

import filecmp
import shutil
from pathlib import Path

from rankfall.disk import atomic
from rankfall.errors import RankfallError
from rankfall.run.objects import find_objects
from rankfall.run.screen.logs import SILENT, error_in
from rankfall.run.snakemake.jobs import PlannedJob
from rankfall.run.snakemake.run_plan import RunPlan

NOT_MADE = "one of its inputs could not be made"
INTERRUPTED = "checkpointed on "  # start of the last line in the log of a job that was stopped


def find_unpublished(run: RunPlan) -> dict[str, str]:
    """Return the published files that are missing or differ from an existing work file, with their work files."""
    return {
        name: file
        for name, file in run.final.items()
        if (run.results / file).is_file() and not _is_copy(run.results / file, run.results / name)
    }


def is_published(run: RunPlan) -> bool:
    """Return whether all work files exist and all published files are copies of them."""
    return all(_is_copy(run.results / file, run.results / name) for name, file in run.final.items())


def publish(run: RunPlan) -> list[str]:
    """Copy all work files that are not yet published and return the published names.

    Remove copies of an earlier plan, whose work files are missing or no longer needed: readers would take their numbers for current ones.
    Copies of other configurations with the same folder of results stay.
    """
    if objects := find_objects(run.results):
        objects.fetch_new("work", run.final.values())
        objects.fetch_new("logs")
    for name, file in run.final.items():
        if not (run.results / file).is_file():
            (run.results / name).unlink(missing_ok=True)
    patterns = ("tables/*", "figures/*", "report/index.html")
    present = {str(path.relative_to(run.results)) for pattern in patterns for path in run.results.glob(pattern)}
    if outdated := present - run.final.keys():
        plans = [plan for folder in run.folder.parent.glob("*") if (plan := RunPlan.load(folder))]
        ours, others = set[tuple[str, str]](), set[tuple[str, str]]()
        for plan in plans:
            (ours if plan.about["name"] == run.about["name"] else others).update(plan.final.items())
        for name, file in ours - others:
            if name in outdated and _is_copy(run.results / file, run.results / name):  # no file of the user's own
                (run.results / name).unlink()
    unpublished = find_unpublished(run)
    for name, file in unpublished.items():
        with atomic(run.results / name) as copy, (run.results / file).open("rb") as content:
            shutil.copyfileobj(content, copy)
    return list(unpublished)


def _is_copy(source: Path, target: Path) -> bool:
    """Return whether both files exist and are equal."""
    try:
        return filecmp.cmp(source, target, shallow=False)
    except OSError:
        return False


def explain_lacking(run: RunPlan) -> dict[str, str]:
    """Return missing table or figure -> reason. Raise if the run was interrupted, so that some jobs neither finished nor failed."""
    reasons = {job.key: find_reason(run, job) for job in run.find_missing()}
    keys = [key for kind in ("table/", "figure/") for key in sorted(reasons) if key.startswith(kind)]
    lacking = {}
    for key in keys:  # its own job failed, or one that writes a part of a table
        parts = [key, *(job.key for job in run.inputs_of(key) if not job.key.startswith("table/"))]
        lacking[key.replace("/", " ")] = next(filter(None, map(reasons.get, parts)), NOT_MADE)
    return lacking


def find_reason(run: RunPlan, job: PlannedJob) -> str | None:
    """Return the error in the log of a failed job, or None if its inputs are missing."""
    if job.kind == "page" or not all((run.results / file).exists() for file in job.inputs):
        return None
    log = run.results / job.log
    reason = error_in(log) if log.is_file() else SILENT
    if reason == SILENT or reason.startswith(INTERRUPTED):
        raise RankfallError(f"the run ended before all jobs were done: {job.key.replace('/', ' ')}: {reason}")
    return reason
