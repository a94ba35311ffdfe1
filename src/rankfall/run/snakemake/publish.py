"""Published files such as `results/tables/residuals.parquet`: copies of work files, written at the end of every run, even a failed one; and
the reasons for those that are missing. They are copies, not links, so that an edit of a table does not change the work file that other jobs
read.
"""

import filecmp
import shutil
from collections.abc import Mapping
from pathlib import Path

from rankfall.disk import atomic, cannot
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

    A copy of an earlier plan is removed: readers would take its numbers for current ones. Its work file is missing, or no longer asked for.
    Copies of other configurations with the same folder of results stay.
    """
    if objects := find_objects(run.results):
        objects.fetch_new("work", run.final.values())
        objects.fetch_new("logs")
    for name, file in run.final.items():
        if not (run.results / file).is_file():
            (run.results / name).unlink(missing_ok=True)
    unasked = [
        copy
        for pattern in ("tables/*", "figures/*", "report/index.html")
        for copy in run.results.glob(pattern)
        if str(copy.relative_to(run.results)) not in run.final
    ]
    others = list_of_others(run) if unasked else set()
    for copy in unasked:
        folder = run.results / "work" / (f"{copy.parent.name[:-1]}/{copy.stem}" if copy.suffix != ".html" else "page")
        # a file of the user's is a copy of none
        files = [str(file.relative_to(run.results)) for file in folder.glob(f"*{copy.suffix}") if _is_copy(file, copy)]
        name = str(copy.relative_to(run.results))
        if files and not any((name, file) in others for file in files):
            copy.unlink()
    found = find_unpublished(run)
    for name, file in found.items():
        copy_file(run.results / file, run.results / name)
    return list(found)


def list_of_others(run: RunPlan) -> set[tuple[str, str]]:
    """Return the published files, with their work files, of configurations of other names that have the same folder of results."""
    plans = [plan for folder in run.folder.parent.glob("*") if (plan := RunPlan.load(folder))]
    return {pair for plan in plans if plan.about["name"] != run.about["name"] for pair in plan.final.items()}


def copy_file(source: Path, target: Path) -> None:
    """Copy a file atomically."""
    with atomic(target) as copy:
        try:
            with source.open("rb") as content:
                shutil.copyfileobj(content, copy)
        except OSError as error:
            raise cannot("read", source, error) from error


def _is_copy(source: Path, target: Path) -> bool:
    try:
        return filecmp.cmp(source, target, shallow=False)
    except OSError:
        return False


def explain_lacking(run: RunPlan) -> dict[str, str]:
    """Return the reason why each missing table and figure could not be made. Raise if the run was interrupted, so that some jobs have
    neither finished nor failed."""
    reasons = {job.key: find_reason(run, job) for job in run.find_missing()}
    wanted = [key for kind in ("table/", "figure/") for key in sorted(reasons) if key.startswith(kind)]
    return {key.replace("/", " "): trace_reason(run, key, reasons) for key in wanted}


def find_reason(run: RunPlan, job: PlannedJob) -> str | None:
    """Return the error in the log of a failed job, or None if its inputs are missing."""
    if job.kind == "page" or not all((run.results / file).exists() for file in job.inputs):
        return None
    log = run.results / job.log
    why = error_in(log) if log.is_file() else SILENT
    if why == SILENT or why.startswith(INTERRUPTED):
        raise RankfallError(f"the run ended before all jobs were done: {job.key.replace('/', ' ')}: {why}")
    return why


def trace_reason(run: RunPlan, key: str, reasons: Mapping[str, str | None]) -> str:
    """Return why a table or figure is missing: its job failed, or a job that writes a part of a table."""
    keys = [key, *(job.key for job in run.inputs_of(key) if not job.key.startswith("table/"))]
    return next((why for one in keys if (why := reasons.get(one))), NOT_MADE)
