"""Hold the state of a run, which Snakemake's events update: jobs that run, are done, or failed."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankfall.run.screen.logs import SILENT, error_in

STAGES = {  # rule -> name of its jobs on the screen
    "data": "data sets",
    "train": "training",
    "measure": "measuring networks",
    "measure_freely": "measuring",
    "table": "tables",
    "figure": "figures",
    "page": "page",
}
VERBS = {"measure_freely": "measure"}  # rule -> command, where they differ


@dataclass
class Job:
    """A started job."""

    rule: str
    name: str  # such as `train sorting 0-31`
    output: str  # first output file
    log: str
    began: float
    seconds: float | None = None  # duration
    error: str = ""
    place: int = 0  # number of jobs done when it ended


@dataclass
class RunState:
    """The state of a run."""

    began: float
    totals: dict[str, int] = field(default_factory=dict)  # rule -> jobs
    done: Counter[str] = field(default_factory=Counter)  # rule -> jobs
    running: dict[str, Job] = field(default_factory=dict)  # by Snakemake's job ID
    finished: list[Job] = field(default_factory=list)
    failed: dict[str, Job] = field(default_factory=dict)  # by output; a job that succeeds in a later attempt is removed
    # output -> rule, estimated seconds, cells
    costs: Mapping[str, tuple[str, float, int]] = field(default_factory=dict)
    cores: int = 1
    slower: float = 1.0  # seconds by the clock for a second of processor time, from the load when the run began
    errors: list[str] = field(default_factory=list)  # of Snakemake itself
    refused: str = ""  # kind of the error that ended Snakemake
    lacks: list[str] = field(default_factory=list)  # tables and figures that the page lacks
    no_page: str = ""  # why there is no page
    stopping: bool = False  # a signal stops the run: jobs that end without a result have not failed
    how: str = "running"  # or ended, stopped, failed

    @property
    def rules(self) -> list[str]:
        """Return the rules that have jobs, in the order in which they run."""
        return [rule for rule in STAGES if rule in self.totals] + sorted(self.totals.keys() - STAGES)

    @property
    def total(self) -> int:
        return sum(self.totals.values())

    @property
    def count(self) -> int:
        """Return the number of finished jobs."""
        return sum(self.done.values())

    def take(self, event: Mapping[str, Any]) -> Job | None:
        """Process an event and return the job that it ends, or None."""
        match event.get("event"):
            case "run_info" if not self.totals:  # Snakemake sends it again at the end
                stats = event.get("stats", {}).items()
                self.totals = {str(rule): int(number) for rule, number in stats if rule not in ("total", "all")}
            case "resources_info":
                self.cores = int(event.get("cores") or self.cores)
            case "rankfall_page":
                self.lacks, self.no_page = list(event.get("lacks") or ()), str(event.get("no_page") or "")
            case "rankfall_stopping":
                self.stopping = True
            case "rankfall_ended":
                self.how = str(event["how"])
            case "job_info" if event["rule_name"] in self.totals:  # not `all`
                self.begin_job(event)
            case "job_finished":
                return self.end_job(str(event["job_id"]), event)
            case "job_error":
                return self.end_job(str(event["jobid"]), event)
            case "error":
                self.refused = str(event.get("exception") or "error")
                self.errors.append(str(event.get("text", "")))
            case "text" if event.get("level") in ("ERROR", "CRITICAL"):
                self.errors.append(str(event.get("text", "")))
        return None

    def begin_job(self, event: Mapping[str, Any]) -> None:
        """Add a job that started or, on a cluster, was submitted."""
        rule, wildcards = str(event["rule_name"]), event.get("wildcards") or {}
        words = [str(value) for wildcard, value in wildcards.items() if wildcard != "digest"]
        name = " ".join([VERBS.get(rule, rule), *words])
        output, log = ((event.get(files) or [""])[0] for files in ("output", "log"))
        self.running[str(event["jobid"])] = Job(rule, name, output, log, float(event["time"]))

    def end_job(self, number: str, event: Mapping[str, Any]) -> Job | None:
        """Move a job that is done or failed, and return it; None for `all`, and for a job that was stopped or will be tried again."""
        job = self.running.pop(number, None)
        if job is None:
            return None
        job.seconds = max(0.0, float(event["time"]) - job.began)  # a clock may be set back
        if event["event"] == "job_finished":
            self.done[job.rule] += 1
            job.place = self.count
            self.finished.append(job)
            self.failed.pop(job.output, None)
            return job
        if self.stopping:
            return None
        job.place = self.count
        # Snakemake removes the log of a job that it tries again, often before this read. The next attempt then reports the error.
        job.error = str(event.get("error") or (error_in(Path(job.log)) if job.log else "it has no log"))
        self.failed[job.output] = job
        return None if job.error == SILENT else job
