"""What a run could not make, and why, by the logs of its jobs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rankfall.errors import RankfallError
from rankfall.run.screen.words import SILENT, error_in

if TYPE_CHECKING:
    from rankfall.run.snakemake.jobs import PlannedJob
    from rankfall.run.snakemake.run_plan import RunPlan

NOT_MADE = "something that it is made from could not be made"
INTERRUPTED = "checkpointed on "  # how the log of a job ends that was asked to stop


def explain_lacking(run: "RunPlan") -> dict[str, str]:
    """Return why each table and figure that is not there could not be made. Raise if jobs that could have run have not: the run was
    interrupted, and nothing can be said of them."""
    reasons = {job.key: find_reason(run, job) for job in run.find_missing()}
    wanted = [key for kind in ("table/", "figure/") for key in sorted(reasons) if key.startswith(kind)]
    return {key.replace("/", " "): trace_reason(run, key, reasons) for key in wanted}


def find_reason(run: "RunPlan", job: "PlannedJob") -> str | None:
    """Why a job failed, by its log; None for one whose inputs are not there."""
    if job.kind == "page" or not all((run.results / file).exists() for file in job.inputs):
        return None
    log = run.results / job.log
    why = error_in(log) if log.is_file() else SILENT
    if why == SILENT or why.startswith(INTERRUPTED):
        raise RankfallError(f"the run ended before all was done: {job.key.replace('/', ' ')}: {why}")
    return why


def trace_reason(run: "RunPlan", key: str, reasons: Mapping[str, str | None]) -> str:
    """Return why a table or figure is not there: its own job failed, or one that makes a part of a table."""
    keys = [key, *(job.key for job in run.inputs_of(key) if not job.key.startswith("table/"))]
    return next((why for one in keys if (why := reasons.get(one))), NOT_MADE)
