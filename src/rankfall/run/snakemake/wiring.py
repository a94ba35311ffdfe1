"""The plan in the form that the workflow's rules need: lists of files, the digest of what each job makes, and what each job needs.

Snakemake compares a rule's params as a set of their representations, but for paths. So a job's digest is a string, and what may change
without changing any result (the name of the configuration's file, where this package lies) is a `Path`.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import rankfall
from rankfall.disk import atomic, not_ahead
from rankfall.errors import RankfallError
from rankfall.report.style import MADE
from rankfall.run.config.types import parse, read
from rankfall.run.keys.analyses import keep
from rankfall.run.plan.build import Plan, make_plan
from rankfall.run.plan.written import CONFIG, FOLDER
from rankfall.run.snakemake.claim import claim
from rankfall.run.snakemake.job_fingerprints import JobFingerprint, JobFingerprints
from rankfall.run.snakemake.lookups import ShardJob
from rankfall.run.snakemake.needs import Needs, needs
from rankfall.run.snakemake.outputs import Outputs
from rankfall.run.snakemake.up_to_date import OutputStates, inspect_outputs
from rankfall.run.snakemake.writing import load_written, name_of, write_plan

SHARD_RULES = frozenset({"data", "train", "measure"})
MOST = 3  # times what the first attempt may use; a job that was preempted often is no larger for that


class Wiring:
    """All that the Snakefile asks for, for one configuration. `runs`: in the process that runs the jobs, which plans, and alone may look
    at what there is. In a job of a cluster it is given `beside`, the file of its configuration, and reads what the run has planned.
    """

    def __init__(self, config: Mapping[str, Any], runs: bool = False, beside: Path | None = None) -> None:
        self.raw = dict(config)
        self.runs = runs
        self.forced: bool | None = None  # whether the command line forces jobs of shards; None: not asked yet
        self._known_needs: dict[ShardJob, Needs] = {}
        self.written = None if runs or beside is None else load_written(beside, self._text)
        known = parse(read(self.raw)) if self.written else self.plan.config
        self.name, self.threads = known.name, known.compute.threads
        self.outputs = Outputs.under(known.results)

    @cached_property
    def plan(self) -> Plan:
        """Of the whole grid. A job of a cluster that finds what it needs does not ask for it."""
        return make_plan(self.raw)

    @cached_property
    def fingerprints(self) -> JobFingerprints:
        return JobFingerprints(self.plan)

    @property
    def results(self) -> str:
        return self.outputs.folder

    @property
    def places(self) -> dict[str, Path]:
        """Of no result's identity, so paths: Snakemake reruns nothing when these change."""
        return {"config": self.config, "results": Path(self.results), "package": Path(rankfall.__file__).parent}

    @cached_property
    def config(self) -> Path:
        """The file that all jobs read the configuration from, in a folder named by its content and by all that is made of it, so that no
        other run can change it."""
        if self.written is not None:
            return self.written.config
        name = name_of(self._text, self.fingerprints)
        return Path(self.results) / FOLDER / name / CONFIG

    @property
    def _text(self) -> str:
        return json.dumps(self.raw, indent=1) + "\n"

    def begin(self) -> None:
        """What a run does before its first job, and a dry run or one that is refused does not."""
        claim(Path(self.results))
        not_ahead(Path(self.results) / part for part in ("shards", "tables", "figures", "report"))
        self.write_plan()
        if self.lookups:
            with atomic(self.lookup_file) as file:
                file.write(json.dumps(self.lookups).encode())

    def write_plan(self) -> None:
        """Write the plan that the jobs of this run read."""
        write_plan(self.config, self._text, self.fingerprints)

    # What there is.

    @property
    def tables(self) -> list[str]:
        return self.fingerprints.tables

    @property
    def figures(self) -> list[str]:
        return sorted(self.plan.figures)

    @cached_property
    def states(self) -> OutputStates:
        """Which outputs are as planned."""
        found = inspect_outputs(self.plan, self.fingerprints, self.outputs)
        keep()  # of what fingerprints have read beyond the plan
        return found

    def set_forced(self, everything: bool, rules: Iterable[str]) -> None:
        """By what the command line forces. Where jobs of shards are forced, what is made of them has to wait for them."""
        self.forced = everything or any(rule in SHARD_RULES or "/shards/" in rule for rule in rules)

    # What needs no job of its own.

    @cached_property
    def lookups(self) -> list[ShardJob]:
        """The jobs of shards that have nothing to compute."""
        return sorted(self.states.lookups) if self.runs else []

    @cached_property
    def lookup(self) -> JobFingerprint:
        return self.fingerprints.lookup(self.lookups)

    @property
    def lookup_outputs(self) -> list[str]:
        return [path for job in self.lookups for path in self.outputs.of(job)]

    @property
    def lookup_file(self) -> Path:
        """The list of them: a command line has no room for thousands."""
        return self.config.with_name(f"lookup-{self.lookup.digest}.json")

    # What jobs need and make.

    def targets(self, wildcards: Any) -> list[str]:
        """All tables and figures, and the page of them."""
        return self.page_inputs(wildcards) + [self.outputs.page] * self.plan.config.page

    def train_inputs(self, wildcards: Any) -> list[str]:
        """The data sets that a shard is trained on, where it is trained: new ones are no reason to look up all shards again."""
        job = ShardJob(wildcards.task, wildcards.shard)
        return [self.outputs.data(wildcards.task)] if self._waits(job) else []

    def measure_inputs(self, wildcards: Any) -> list[str]:
        """That a shard's networks are there, where they have to be trained; they are in the store."""
        place = wildcards.task, wildcards.shard
        waits = self._waits(ShardJob(*place, wildcards.measure)) and self._waits(ShardJob(*place))
        return [self.outputs.cells(*place)] if waits else []

    def _waits(self, job: ShardJob) -> bool:
        """Whether a job has something to compute. A job of a cluster was started because it has, when all it needs was there."""
        return bool(self.forced) or (self.runs and job in self.states.computing)

    def table_inputs(self, wildcards: Any) -> list[str]:
        """The shards of a table."""
        return [part.path for part in self.fingerprints.parts(wildcards.table, self.outputs)]

    def free_measure_inputs(self, wildcards: Any) -> list[str]:
        """The tables that a measure of tables is computed from."""
        written = self._written_job(self.outputs.freely(wildcards.measure))
        tables = written["tables"] if written else self.plan.measure(wildcards.measure).tables
        return [self.outputs.table(table) for table in tables]

    def figure_inputs(self, wildcards: Any) -> list[str]:
        """The tables of a figure."""
        return [self.outputs.table(table) for table in self.plan.figure(wildcards.figure).tables]

    @property
    def figure_kinds(self) -> list[str]:
        """The files of a figure beside its picture."""
        return [kind for kind in MADE if kind != "png"]

    def page_inputs(self, wildcards: Any) -> list[str]:
        """All tables and figures: numbers are in the page, figures are linked with their captions."""
        return [
            *(self.outputs.table(table) for table in self.tables),
            *(self.outputs.picture(figure) for figure in self.figures),
        ]

    def figure_category(self, wildcards: Any) -> str:
        """The category in the report: one for all figures of the same main table."""
        return self.plan.figures[wildcards.figure].tables[0].replace("_", " ")

    # What each job makes.

    def data(self, wildcards: Any) -> str:
        return self.fingerprints.data(wildcards.task).digest

    def train(self, wildcards: Any) -> str:
        job = ShardJob(wildcards.task, wildcards.shard)
        return self._digest(self.outputs.of(job)[0], lambda: self.fingerprints.of(job))

    def measure(self, wildcards: Any) -> str:
        job = ShardJob(wildcards.task, wildcards.shard, wildcards.measure)
        return self._digest(self.outputs.of(job)[0], lambda: self.fingerprints.of(job))

    def measure_freely(self, wildcards: Any) -> str:
        name = wildcards.measure
        return self._digest(self.outputs.freely(name), lambda: self.fingerprints.freely(name))

    def table(self, wildcards: Any) -> str:
        return self.fingerprints.table(wildcards.table).digest

    def figure(self, wildcards: Any) -> str:
        return self.fingerprints.figure(wildcards.figure).digest

    def page(self, wildcards: Any) -> str:
        return self.fingerprints.page().digest

    # What the job of a shard needs.

    def train_priority(self, wildcards: Any) -> float:
        return self._needs(ShardJob(wildcards.task, wildcards.shard)).priority

    def measure_priority(self, wildcards: Any) -> float:
        return self._needs(ShardJob(wildcards.task, wildcards.shard, wildcards.measure)).priority

    def train_minutes(self, wildcards: Any, attempt: int = 1) -> int:
        return self._needs(ShardJob(wildcards.task, wildcards.shard)).minutes * min(attempt, MOST)

    def train_memory(self, wildcards: Any, attempt: int = 1) -> int:
        return self._needs(ShardJob(wildcards.task, wildcards.shard)).megabytes * min(attempt, MOST)

    def measure_minutes(self, wildcards: Any, attempt: int = 1) -> int:
        return self._needs(ShardJob(wildcards.task, wildcards.shard, wildcards.measure)).minutes * min(attempt, MOST)

    def measure_memory(self, wildcards: Any, attempt: int = 1) -> int:
        return self._needs(ShardJob(wildcards.task, wildcards.shard, wildcards.measure)).megabytes * min(attempt, MOST)

    def _needs(self, job: ShardJob) -> Needs:
        if job not in self._known_needs:
            written = self._written_job(self.outputs.of(job)[0])
            self._known_needs[job] = Needs(*written["needs"]) if written else needs(self.plan, job)
        return self._known_needs[job]

    def _written_job(self, path: str) -> dict[str, Any] | None:
        """What the run's plan says of the job that makes a file; None where this process plans itself."""
        if self.written is None:
            return None
        job = self.written.about["jobs"].get(path.removeprefix(self.results))
        return None if job is None else dict(job)

    def _digest(self, path: str, state: Callable[[], JobFingerprint]) -> str:
        written = self._written_job(path)
        return str(written["made"]) if written else state().digest


def check_paths(*lists: Iterable[str]) -> None:
    """Folders that go into PATH and PYTHONPATH, where a `:` would make two of one, and jobs import something else or nothing; and
    that Snakemake takes for patterns if they have braces.
    """
    for folder in (folder for one in lists for folder in one):
        for sign in (os.pathsep, "{", "}", "\n"):
            if sign in folder:
                raise RankfallError(
                    f"{folder!r}: jobs would not be found in a folder with {sign!r} in its name; move or rename it"
                )
