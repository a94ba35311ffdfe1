"""What commands share: the arguments of a verb, and the plan, the folder of results, the check for changes and the signals of a job.

A verb lists its arguments as its help does: one a line with its name, its value, two spaces, and what it does. A value in brackets may be
left out, one with dots may be several. `FILE` and `FOLDER` are paths, `N` is an integer, `X` a number, and `a|b` one of these words. What
it does may end with its default, with `(required)` or with `(repeatable)`.

A job reads its part of the written plan, which is beside its configuration, and stops if a file in its digest has changed since. Without a
written plan, or if it is damaged, the job plans the whole grid and compares digests.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankfall.run.jobs.engine import Settings
    from rankfall.run.plan import Plan
    from rankfall.run.snakemake.jobs import PlannedJob
    from rankfall.run.snakemake.run_plan import RunPlan
    from rankfall.run.store import Store


@dataclass(frozen=True)
class Planned:
    """A job with its plan."""

    plan: "Plan"
    run: "RunPlan"
    job: "PlannedJob"
    results: Path
    command: Sequence[str] = ()  # of the job's workers; empty in a worker

    def table_file(self, name: str, folder: Path | None = None) -> Path:
        """Return the path of a table: its work file, or the file with its name in `folder`."""
        return folder / f"{name}.parquet" if folder else self.results / self.run.job("table", name).files[0]


ARGUMENTS = """
--config FILE      the benchmark's config, YAML or JSON (required)
--results FOLDER   folder of results; by default the one that the config names
--expect DIGEST    digest of the job in the run's plan; stop if it differs now
--package FOLDER   folder of the run's `rankfall` package; stop if this is another
"""


def plan_job(args: argparse.Namespace, kind: str, *names: str, cells: Iterable[str] = ()) -> Planned:
    """Return one job with its plan, and raise if its digest, its code or its package is not as planned. `cells` are the files of the
    written plan with the job's cells."""
    import rankfall
    from rankfall.errors import RankfallError
    from rankfall.run.config.types import read
    from rankfall.run.guards import check_unchanged
    from rankfall.run.plan import make_plan
    from rankfall.run.plan.written import CONFIG, DamagedPlan, read_plan
    from rankfall.run.snakemake.run_plan import RunPlan

    package = Path(rankfall.__file__).parent
    if args.package is not None and package.resolve() != args.package.resolve():
        raise RankfallError(
            f"this job runs the package in {package}, and was planned by the one in {args.package}: another `rankfall` is first on "
            f"Python's path (from a folder of that name where Snakemake was started, or PYTHONPATH in the job's start-up files)"
        )
    run = RunPlan.load(args.config.parent) if args.expect is not None and args.config.name == CONFIG else None
    if run is not None:
        try:
            plan, job = read_plan(run.folder, *cells), run.job(kind, *names)
            job.check(args.expect)
            check_unchanged(job.code)
            return Planned(plan, run, job, args.results or run.results, worker_command(kind, args))
        except DamagedPlan as error:
            print(f"planning the whole grid instead of reading this job's part: {error}", file=sys.stderr)
    raw = read(args.config)
    plan = make_plan(raw)
    run = RunPlan.make(plan, raw, args.results)
    job = run.job(kind, *names)
    job.check(args.expect)
    return Planned(plan, run, job, run.results, worker_command(kind, args))


def worker_command(kind: str, args: argparse.Namespace) -> list[str]:
    """Return the command of a worker: that of the job, with `--worker`."""
    if getattr(args, "worker", True):
        return []
    names = ("config", "results", "expect", "package", "measure", "task", "shard", "out")
    values = {name: getattr(args, name, None) for name in names}
    return [kind, *(f"--{name}={value}" for name, value in values.items() if value is not None), "--worker"]


def run_job(
    planned: Planned,
    codes: Iterable[Mapping[str, str]],
    work: "Callable[[Store, Settings], None]",
    insist: bool = True,
) -> int:
    """Run `work` on the configured device and return the exit code. Users' components may read only the files in `codes`. With `insist`, a
    missing GPU is an error; without, the CPU replaces it. A signal stops the work after a checkpoint."""
    from rankfall.run.guards import guard_job
    from rankfall.run.jobs.engine import INTERRUPTED, Interrupted, Settings
    from rankfall.run.store import Store
    from rankfall.train.device import prepare

    compute = planned.plan.config.compute
    device = prepare(compute.device, compute.threads, insist=insist)
    curves = planned.results / "curves" if compute.tensorboard else None
    workers = compute.workers if planned.command else 1
    settings = Settings(device, compute.stack, compute.checkpoint_seconds, curves, workers, planned.command)
    with guard_job(codes, planned.results):
        try:
            work(Store(planned.results / "store"), settings)
        except Interrupted as reason:
            print(f"checkpointed on {reason}; run again to go on", file=sys.stderr)
            return INTERRUPTED
    return 0


TYPES: dict[str, Any] = {"FILE": Path, "FOLDER": Path, "N": int, "X": float}


def add_arguments(parser: argparse.ArgumentParser, listing: str) -> None:
    """Add the arguments of such a listing. An argument without `--` is stored under its value in small letters."""
    for line in filter(None, re.sub(r"\n {5,}", " ", listing).split("\n")):
        words, text = re.split(" {2,}", line, maxsplit=1)
        option, _, value = words.rpartition(" ")
        keywords: dict[str, Any] = {"help": text.replace("%", "%%")}
        if value.startswith("--"):
            parser.add_argument(value, action="store_true", **keywords)
            continue
        name = value.strip("[].")
        kind = TYPES.get(name, str)
        keywords |= {"choices": name.split("|")} if "|" in name else {"metavar": name, "type": kind}
        if text.endswith("(required)"):
            keywords["required"] = True
        if text.endswith("(repeatable)"):
            keywords |= {"action": "append", "default": []}
        elif "..." in value:
            keywords |= {"nargs": "*" if "[" in value else "+", "default": []}
        elif "[" in value:
            keywords["nargs"] = "?"
        if default := re.search(r"\(default: ([^ ,)]+)", text):
            keywords["default"] = kind(default[1])
        parser.add_argument(option or name.lower(), **keywords)
