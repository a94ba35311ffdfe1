"""All that Rankfall reads or sets of Snakemake beyond what a Snakefile is documented to have, one function each: what it is for, and what a
run would do without it. `tests/run/snakemake/test_internals.py` asks a real run for every name that is touched here, and fails on the
version of Snakemake that has moved one.
"""

import _thread
import signal
import threading
from collections.abc import Iterable, Set
from pathlib import Path
from typing import Any

SCHEDULER = "snakemake.scheduling.job_scheduler"


class Internals:
    """Of the `workflow` that a Snakefile is given."""

    def __init__(self, workflow: Any) -> None:
        self.workflow = workflow

    @property
    def is_module(self) -> bool:
        """Whether this Snakefile is a part of another workflow, which gives it its configuration. Without: the other's configuration is
        cleared, and handlers that Snakemake does not call for modules are relied on."""
        return self.workflow.modifier.namespace is not None

    @property
    def runs_jobs(self) -> bool:
        """Whether this process plans and starts the jobs, and is none of them. Without: each job of a cluster plans the whole grid."""
        return bool(self.workflow.is_main_process)

    @property
    def is_dry(self) -> bool:
        """Whether nothing is to be run. Without: a dry run of a module writes its plan into the results."""
        return bool(self.workflow.dryrun)

    @property
    def config_files(self) -> list[Any]:
        """What `--configfile` names. Without: a preset is merged into config.yaml, and the default's architectures turn up in it."""
        return list(self.workflow.overwrite_configfiles)

    @property
    def config_values(self) -> dict[str, Any]:
        """What `--config` sets. Without: such values are lost when the files are read again."""
        return dict(self.workflow.config_settings.config)

    def give_jobs(self, config: Path) -> None:
        """The file that jobs of a cluster read instead of what `--configfile` named. Without: config.yaml edited while a run waits in the
        queue changes the jobs of that run."""
        self.workflow.config_settings.configfiles = [config.absolute()]

    def local_jobs(self) -> list[str]:
        """The kinds of the jobs to be run on this machine. Without: the server of jobs cannot import beforehand what they need."""
        return [kind_of(job) for job in self.workflow.dag.local_needrun_jobs]

    def rerun_by_time_only(self) -> None:
        """Whatever the profile says: what is right follows from what outputs say, not from how they came to be. Without: a table is made
        again because another rule wrote it, or its job asked for other files."""
        from snakemake.settings.types import RerunTrigger

        self.workflow.dag_settings.rerun_triggers = frozenset({RerunTrigger.MTIME})

    def read_forced(self) -> tuple[bool, list[str]]:
        """Whether all jobs are forced (`--forceall`), and which rules or files (`--forcerun`). Without: what is made of shards does not
        wait for shards that are forced."""
        settings = self.workflow.dag_settings
        return bool(settings.forceall), [str(one) for one in settings.forcerun]

    def force(self, files: Iterable[str]) -> None:
        """Have these files made again. Without: an output that is there, but not what is planned, is taken as it is."""
        self.workflow.dag.forcefiles.update(files)

    def forces(self, files: Set[str]) -> bool:
        """Whether all of these are to be made again. Snakemake makes its graph anew for some options, and forgets them."""
        return files <= self.workflow.dag.forcefiles

    def hear_sigterm_beside(self) -> bool:
        """Whether the scheduler hears SIGTERM, from now on in a thread of its own: it takes a lock then, which its own thread may hold at
        that moment. Without: a run that is told to end just when it notes what its jobs have done waits for itself for ever."""
        end = self.workflow.scheduler.exit_gracefully
        heard = signal.getsignal(signal.SIGTERM) == end
        if heard:
            signal.signal(signal.SIGTERM, lambda *_: _thread.start_new_thread(end, ()))
        return heard

    def wake_once(self) -> None:
        """Has the scheduler wait for one timer at a time. It sets one whenever it looks for jobs to start, which wakes it a second later to
        look again. Without: each job that ends adds one of these for good, so that a run of n jobs looks n times a second, each time at all
        that wait."""
        scheduler, pending = self.workflow.scheduler, set[float]()
        assert callable(scheduler._schedule_reevalutation), "it is what sets them"

        def set_timer(delay: float) -> None:
            def wake() -> None:
                pending.discard(delay)  # first: it is set again as soon as the scheduler is awake
                scheduler._open_jobs.release()

            if delay not in pending:
                pending.add(delay)
                threading.Timer(delay, wake).start()

        scheduler._schedule_reevalutation = set_timer

    def find_failed_for_page(self) -> dict[str, Path]:
        """After a run that failed: first file of each job that did -> its log. Nothing where the page was not asked for, or the run was
        interrupted: then jobs are not done that will be, and nothing is to be said of them. Without: one failed figure leaves no page."""
        scheduler = self.workflow.scheduler
        interrupted = scheduler.running or scheduler._user_kill
        if interrupted or not any(job.rule.name == "page" for job in self.workflow.dag.jobs):
            return {}
        return {str(job.output[0]): Path(str(job.log[0])) for job in scheduler.failed}


def kind_of(job: Any) -> str:
    """What the server of jobs needs to know of one: its rule; of a measure, which."""
    measure = job.wildcards.get("measure")
    return f"measure {measure}" if measure else str(job.rule.name)


def forget_timers() -> None:
    """At the end of a run: the scheduler has a timer that wakes it a second later, of ours or its own. Without: a run ends a second later
    than its last job."""
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer) and thread.function.__module__ in (SCHEDULER, __name__):
            thread.cancel()
