"""The plan, the folder of results and the check for changes that are common to the commands of jobs.

A job of a run finds beside its configuration what the run has planned, reads what is its own and makes that part of the plan anew, of the
configuration and the sources as they are now. If its digest is then the one in the names of its files, all is as it was planned. In any
other case (nothing is there, a file is damaged, something was edited, nobody said what to expect) the whole grid is planned, which says
what is wrong.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankfall.run.plan import Plan
    from rankfall.run.plan.slices import Slice
    from rankfall.run.plan.written import WrittenPlan
    from rankfall.run.snakemake.jobs import PlanJobs, PlannedJob


@dataclass(frozen=True)
class Planned:
    """A job with its own plan."""

    plan: "Plan"
    results: Path
    jobs: "PlanJobs"
    job: "PlannedJob"

    @property
    def inputs(self) -> list[Path]:
        """The files that it reads."""
        return [self.results / file for file in self.job.inputs]

    def table_file(self, name: str, folder: Path | None = None) -> Path:
        """Where the job finds a table: its work file, or the file of its name in a folder that was named."""
        return folder / f"{name}.parquet" if folder else self.results / self.jobs.job("table", name).files[0]


def add_arguments(parser: argparse.ArgumentParser, required: bool = True) -> None:
    parser.add_argument("--config", type=Path, required=required, help="the benchmark's config, YAML or JSON")
    parser.add_argument("--results", type=Path, help="folder of results; by default the one that the config names")
    parser.add_argument(
        "--expect", metavar="DIGEST", help="digest of the job in the run's plan; stop if it differs now"
    )
    parser.add_argument(
        "--package", type=Path, metavar="FOLDER", help="folder of the run's `rankfall` package; stop if this is another"
    )


def plan_job(
    args: argparse.Namespace, kind: str, *names: str, read: "Callable[[WrittenPlan], Slice] | None" = None
) -> Planned:
    """Plan one job with the same package as the run. `read`: the cells that it needs, of a plan that the run has written; None: all.
    Raise if it would make something else than was planned."""
    import rankfall
    from rankfall.errors import RankfallError
    from rankfall.run.plan import make_plan
    from rankfall.run.snakemake.jobs import PlanJobs

    here = Path(rankfall.__file__).parent
    if args.package is not None and here.resolve() != args.package.resolve():
        raise RankfallError(
            f"this job runs the package in {here}, and was planned by the one in {args.package}: something puts another "
            f"`rankfall` first (a folder of that name where Snakemake was started, or PYTHONPATH in the job's start-up files)"
        )
    if args.expect is not None and read is not None:
        own = _plan_own_part(args, kind, names, read)
        if own is not None:
            return own
    plan = make_plan(args.config)
    jobs = PlanJobs(plan)
    job = jobs.job(kind, *names)
    job.check(args.expect)
    return Planned(plan, args.results or Path(plan.config.results), jobs, job)


def _plan_own_part(
    args: argparse.Namespace, kind: str, names: tuple[str, ...], read: "Callable[[WrittenPlan], Slice]"
) -> Planned | None:
    """Return the job's part of the plan; None if it cannot be read or differs from what was planned."""
    from rankfall.errors import RankfallError
    from rankfall.run.plan import make_plan
    from rankfall.run.plan.written import WrittenPlan
    from rankfall.run.snakemake.jobs import PlanJobs
    from rankfall.run.snakemake.run_plan import RunPlan

    written = WrittenPlan.load_beside(args.config)
    if written is None:
        return None
    try:
        plan = make_plan(args.config, read(written))
        inputs = []
        if kind == "table" or (len(names) == 1 and kind in ("figure", "measure")):  # made from files of other jobs
            run = RunPlan.load(written.folder)
            inputs = run.inputs_of("/".join((kind, *names))) if run else []
        jobs = PlanJobs(plan, inputs)
        job = jobs.job(kind, *names)
        why = "" if job.digest == args.expect else "what it makes is not what was planned"
    except (RankfallError, LookupError, TypeError, ValueError) as error:
        why = str(error)
    if not why:
        return Planned(plan, args.results or Path(plan.config.results), jobs, job)
    print(f"planning the whole grid instead of this job's part: {why}", file=sys.stderr)
    return None
