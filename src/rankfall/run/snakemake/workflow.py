"""What the Snakefile does with Snakemake's own objects."""

import threading
from pathlib import Path
from typing import Any

SCHEDULER = "snakemake.scheduling.job_scheduler"


def kind_of(job: Any) -> str:
    """What the server of jobs needs to know of one: its rule; of a measure, which."""
    measure = job.wildcards.get("measure")
    return f"measure {measure}" if measure else str(job.rule.name)


def forget_timers() -> None:
    """At the end of a run: with each job the scheduler has set a timer that wakes it a second later, and Snakemake would wait for it."""
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer) and thread.function.__module__ == SCHEDULER:
            thread.cancel()


def failed_for_page(workflow: Any) -> dict[str, Path]:
    """After a run that failed: first file of each job that did -> its log. Nothing where the page was not asked for, or the run was
    interrupted: then jobs are not done that will be, and nothing is to be said of them."""
    scheduler = workflow.scheduler
    interrupted = scheduler.running or scheduler._user_kill
    if interrupted or not any(job.rule.name == "page" for job in workflow.dag.jobs):
        return {}
    return {str(job.output[0]): Path(str(job.log[0])) for job in scheduler.failed}
