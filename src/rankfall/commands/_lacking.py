"""Reasons for missing tables and figures, from the logs of a run's jobs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rankfall.errors import RankfallError
from rankfall.run.screen.words import SILENT, error_in

if TYPE_CHECKING:
    from rankfall.run.snakemake.jobs import PlannedJob
    from rankfall.run.snakemake.run_plan import RunPlan

NOT_MADE = "one of its inputs could not be made"
INTERRUPTED = "checkpointed on "  # start of the last line in the log of a job that was stopped


def explain_lacking(run: "RunPlan") -> dict[str, str]:
    """Return the reason why each missing table and figure could not be made. Raise if the run was interrupted, so that some jobs have
    neither finished nor failed."""
    reasons = {job.key: find_reason(run, job) for job in run.find_missing()}
    wanted = [key for kind in ("table/", "figure/") for key in sorted(reasons) if key.startswith(kind)]
    return {key.replace("/", " "): trace_reason(run, key, reasons) for key in wanted}


def find_reason(run: "RunPlan", job: "PlannedJob") -> str | None:
    """Return the error in the log of a failed job, or None if its inputs are missing."""
    if job.kind == "page" or not all((run.results / file).exists() for file in job.inputs):
        return None
    log = run.results / job.log
    why = error_in(log) if log.is_file() else SILENT
    if why == SILENT or why.startswith(INTERRUPTED):
        raise RankfallError(f"the run ended before all jobs were done: {job.key.replace('/', ' ')}: {why}")
    return why


def trace_reason(run: "RunPlan", key: str, reasons: Mapping[str, str | None]) -> str:
    """Return why a table or figure is missing: its job failed, or a job that writes a part of a table."""
    keys = [key, *(job.key for job in run.inputs_of(key) if not job.key.startswith("table/"))]
    return next((why for one in keys if (why := reasons.get(one))), NOT_MADE)
