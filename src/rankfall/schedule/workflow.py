"""What the Snakefile does with Snakemake's own objects."""

import threading
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
