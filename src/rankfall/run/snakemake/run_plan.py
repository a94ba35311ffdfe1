"""The plan of a run as plain data: its jobs with their files and resources, and the files that are published at the end.

`rankfall run` or the Snakefile makes the plan once and writes it with the configuration to `results/plan/<digest>/`
(`run/plan/written.py`). The Snakefile, jobs of a cluster and `rankfall publish` read it. The digest in the folder's name covers the
configuration, the code that plans and the digests of all jobs, so no other run changes the folder.
"""

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from rankfall.errors import RankfallError
from rankfall.run.config.problems import problem
from rankfall.run.objects import find_objects
from rankfall.run.plan.build import Plan, make_plan
from rankfall.run.plan.cell import digest
from rankfall.run.plan.written import CONFIG, FOLDER, JOBS, read_jobs, shard_file, write_once, write_parts
from rankfall.run.snakemake.estimates import Needs, needs
from rankfall.run.snakemake.jobs import PlanJobs, PlannedJob
from rankfall.run.store.announced import announce
from rankfall.sources.fingerprint import Sources
from rankfall.sources.imports import keep

PLAN = "RANKFALL_PLAN"  # environment variable with the folder of the run's plan, for the Snakefile and the jobs
# modules that make and write a plan
PLANNING = ("rankfall.run.plan.build", "rankfall.run.plan.written", "rankfall.run.snakemake.jobs", __name__)
SHOWN = 12  # largest number of printed reasons
LISTED = 30  # largest number of jobs in the error for an unknown job
MANY = 3  # changes that a reason lists; it counts the others
LOCAL = frozenset({"data", "table", "figure", "page"})  # kinds of jobs that run where Snakemake runs, with any profile


@dataclass(frozen=True, eq=False)
class RunPlan:
    """The plan of a run. `about` is the content of its file. `plan` and `raw` are its sources, or None for a plan that was read."""

    folder: Path
    about: Mapping[str, Any]
    plan: Plan | None = field(default=None, repr=False)
    raw: Mapping[str, Any] | None = field(default=None, repr=False)

    @classmethod
    def make(cls, plan: Plan, raw: Mapping[str, Any], results: str | Path | None = None) -> "RunPlan":
        """Plan the jobs of a configuration."""
        jobs = PlanJobs(plan)
        planned = jobs.all_jobs
        codes: dict[tuple[tuple[str, str], ...], int] = {}  # code -> its number; many jobs share one
        numbers = [codes.setdefault(tuple(job.code.items()), len(codes)) for job in planned]
        about = {
            "name": plan.config.name,
            "threads": plan.config.compute.threads,
            "workers_per_gpu": plan.config.compute.workers_per_gpu * plan.config.compute.device.startswith("cuda"),
            "jobs": [[job.key, job.digest, job.summary, job.inputs, number] for job, number in zip(planned, numbers)],
            "needs": {job.key: needs(plan, job) for job in planned if job.rule in ("train", "measure")},
            "categories": {name: figure.tables[0].replace("_", " ") for name, figure in plan.figures.items()},
            "final": jobs.final_files(),
            "code_files": [dict(code) for code in codes],
            "engines": sorted({cell.engine for cell in plan.cells}),
        }
        digests = [(job.key, job.digest) for job in planned]
        name = digest("plan", config_text(raw), Sources().fingerprint(PLANNING), digests)
        keep()
        return cls(Path(os.path.normpath(results or plan.config.results)) / FOLDER / name, about, plan, raw)

    @classmethod
    def load(cls, folder: Path) -> "RunPlan | None":
        """Read a written plan. Return None if it is missing, damaged or of another version."""
        about = read_jobs(folder)
        return None if about is None else cls(folder, about)

    def write(self) -> None:
        """Write the files that the jobs of this run read, and announce the needed results to the store.

        Do nothing for a plan that was read. Each file is written atomically, the list of jobs last."""
        if self.plan is None or self.raw is None:
            return
        plan = self.plan
        write_once(self.config, config_text(self.raw).encode())
        os.utime(self.folder)  # the time of the last use for `rankfall gc`; first, since one may be cleaning up now
        write_parts(self.folder, plan)
        write_once(self.folder / JOBS, json.dumps(self.about, separators=(",", ":")).encode())
        measures: dict[str, set[str]] = {}
        for measure in plan.measures.values():
            measures.setdefault(measure.component.name, set()).add(measure.key)
        announce(self, self.results / "store", plan.cells, measures)  # valid as long as this object exists

    @property
    def config(self) -> Path:
        """Return the file from which all jobs read the configuration."""
        return self.folder / CONFIG

    @property
    def results(self) -> Path:
        return self.folder.parents[1]

    @cached_property
    def jobs(self) -> dict[str, PlannedJob]:
        codes: list[dict[str, str]] = self.about["code_files"]
        return {
            key: PlannedJob(key, job_digest, summary, tuple(inputs), codes[number])
            for key, job_digest, summary, inputs, number in self.about["jobs"]
        }

    def job(self, kind: str, *names: str) -> PlannedJob:
        """Return the job of this kind with these names."""
        key = "/".join((kind, *names))
        if key not in self.jobs:
            known = [other.removeprefix(f"{kind}/") for other in self.jobs if other.startswith(f"{kind}/")]
            listed = known if len(known) <= LISTED else ()
            name = "/".join(names)
            raise problem(kind, f"{name!r} is not in the plan", allowed=listed, near=known, name=name)
        return self.jobs[key]

    @property
    def tables(self) -> list[str]:
        """Return the published tables, sorted."""
        return sorted(job.names[0] for job in self.jobs.values() if job.kind == "table")

    @property
    def shard_files(self) -> list[str]:
        """Return the files of the written plan that hold the cells."""
        return [shard_file(*job.names) for job in self.jobs.values() if job.kind == "train"]

    @cached_property
    def makers(self) -> dict[str, PlannedJob]:
        """Return file relative to the folder of results -> the job that writes it."""
        return {file: job for job in self.jobs.values() for file in job.files}

    @property
    def final(self) -> dict[str, str]:
        """Return published file -> the work file that it copies, both relative to the folder of results."""
        return dict(self.about["final"])

    def find(self, pattern: str, wildcards: Any) -> PlannedJob:
        """Return the job that writes a file of a rule. `pattern` is the job's key with the rule's wildcards."""
        job = self.job(*pattern.format(**dict(wildcards.items())).split("/"))
        job.check(wildcards.digest)
        return job

    def needs(self, pattern: str, wildcards: Any) -> Needs:
        """Return priority and resources of a shard's job."""
        return Needs(*self.about["needs"][self.find(pattern, wildcards).key])

    def inputs_of(self, key: str) -> list[PlannedJob]:
        """Return the jobs whose files a job reads."""
        return [self.makers[file] for file in self.jobs[key].inputs]

    def paths(self, files: Iterable[str]) -> list[str]:
        """Return the paths of files as Snakemake names them."""
        return [f"{self.results}/{file}" for file in files]

    def find_missing(self) -> list[PlannedJob]:
        """Return the jobs that a run must do: those that write missing final files, and their missing inputs."""
        missing: dict[str, PlannedJob] = {}
        waiting = [*self.final.values()]
        objects = find_objects(self.results)
        stored = objects.names("work") if objects else {}
        while waiting:
            file = waiting.pop()
            job = self.makers[file]
            if job.key not in missing and file not in stored and not os.path.exists(self.results / file):
                missing[job.key] = job
                waiting += job.inputs
        return [job for key, job in self.jobs.items() if key in missing]

    def find_made_of(self, keys: Collection[str]) -> list[PlannedJob]:
        """Return these jobs and all jobs that depend on them."""
        dependent: dict[str, PlannedJob] = {}
        for key, job in self.jobs.items():  # each after the jobs whose files it reads
            if key in keys or any(self.makers[file].key in dependent for file in job.inputs):
                dependent[key] = job
        return list(dependent.values())

    def kinds_here(self, all_here: bool) -> list[str]:
        """Return the rules of the jobs that will run on this machine, with the names of measures, for the fork server."""
        local = [job for job in self.find_missing() if all_here or job.kind in LOCAL or job.rule == "measure_freely"]
        return [f"measure {job.names[0]}" if job.kind == "measure" else job.rule for job in local]

    # Why a job runs.

    def load_before(self) -> "RunPlan | None":
        """Return the plan, other than this one, that was used last for these results."""
        try:
            others = [path for path in self.folder.parent.iterdir() if path.name != self.folder.name]
            times = {path: path.stat().st_mtime for path in others if (path / JOBS).is_file()}
        except OSError:
            return None
        return RunPlan.load(max(times, key=lambda path: times[path])) if times else None

    def explain(self, jobs: Iterable[PlannedJob]) -> dict[str, str]:
        """Return key of a job -> why it must run, compared with the previous plan. Jobs that are not in that plan are omitted."""
        before = self.load_before()
        known = before.jobs if before else {}
        return {job.key: describe_difference(known[job.key], job) for job in jobs if job.key in known}

    def lines(self) -> list[str]:
        """Return a line for each reason, the most frequent first."""
        reasons = self.explain(self.find_missing())
        counts = Counter(reasons.values())
        first = {reason: key for key, reason in reversed(reasons.items())}
        lines = []
        for reason, count in counts.most_common(SHOWN):
            others = f" and {count - 1} more" if count > 1 else ""
            lines.append(f"{first[reason].replace('/', ' ')}{others}: {reason}")
        return lines + [f"... and {len(counts) - SHOWN} more reasons"] * (len(counts) > SHOWN)


def describe_difference(before: PlannedJob, now: PlannedJob) -> str:
    """Return why a job's digest changed."""
    if before.digest == now.digest:
        return "its files are missing"
    if before.code != now.code:
        return describe_changed_code(before.code, now.code)
    if before.summary != now.summary:
        return f"made of {before.summary} before, of {now.summary} now"
    return "its cells, options or input files changed"


def describe_changed_code(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return the list of the files that differ, as text."""
    files = {file: "changed" for file in now if file in before and now[file] != before[file]}
    files |= {file: "is now used" for file in now if file not in before}
    files |= {file: "is no longer used" for file in before if file not in now}
    changes = [f"{file} {change}" for file, change in sorted(files.items())]
    return list_reasons(changes) or "its data changed"


def list_reasons(reasons: list[str]) -> str:
    """Return the first reasons and the number of the others."""
    more = f" and {len(reasons) - MANY} more" if len(reasons) > MANY else ""
    return ", ".join(reasons[:MANY]) + more


def config_text(raw: Mapping[str, Any]) -> str:
    """Return the text of the written configuration."""
    return json.dumps(raw, indent=1) + "\n"


def check_paths(folders: Iterable[str]) -> None:
    """Raise if a folder for PATH or PYTHONPATH contains a `:`, which would split it, or a brace, which Snakemake reads as a pattern.

    With a split folder, jobs would import other modules or none."""
    for folder in folders:
        for sign in (os.pathsep, "{", "}", "\n"):
            if sign in folder:
                raise RankfallError(
                    f"{folder!r}: jobs cannot run from a folder with {sign!r} in its name; move or rename it"
                )


def plan_or_load(config: Mapping[str, Any], is_job: bool) -> RunPlan:
    """Return the plan of the Snakefile's configuration.

    A job of a cluster gets the plan of its run, even if the configuration changed. Otherwise the plan is that of `rankfall run`, which has
    just written it, or a new one."""
    folder = os.environ.get(PLAN)
    written = RunPlan.load(Path(folder)) if folder and (is_job or is_plan_of(Path(folder), config)) else None
    return written or RunPlan.make(make_plan(config), config)


def is_plan_of(folder: Path, config: Mapping[str, Any]) -> bool:
    """Return whether a written plan belongs to a configuration."""
    try:
        return bool(json.loads((folder / CONFIG).read_text()) == json.loads(config_text(config)))
    except (OSError, ValueError):
        return False
