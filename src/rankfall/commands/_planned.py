"""The plan, the folder of results and the check for changes that are common to the commands of jobs.

A run writes its plan beside the configuration. A job reads its own part of that file and plans this part again, from the current
configuration and sources. If the digest equals the expected one, nothing has changed. Otherwise (the file is missing or damaged, a source
was edited, no digest was passed) the job plans the whole grid, which reports what is wrong.
"""

import argparse
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankfall.run.plan import Plan
    from rankfall.run.plan.slices import Slice
    from rankfall.run.plan.written import WrittenPlan
    from rankfall.run.snakemake.job_fingerprints import JobFingerprint, JobFingerprints
    from rankfall.run.snakemake.outputs import Outputs


@dataclass(frozen=True)
class Planned:
    """The plan of a job, its folder of results and the expected digest."""

    plan: "Plan"
    results: Path
    expected: str | None
    written: "WrittenPlan | None" = None  # set if the plan has the cells of this job only

    @property
    def outputs(self) -> "Outputs":
        from rankfall.run.snakemake.outputs import Outputs

        return Outputs.under(self.results)

    @cached_property
    def fingerprints(self) -> "JobFingerprints":
        from rankfall.run.snakemake.job_fingerprints import JobFingerprints
        from rankfall.run.snakemake.written_fingerprints import WrittenFingerprints

        return JobFingerprints(self.plan) if self.written is None else WrittenFingerprints(self.plan, self.written)

    def check(self, fingerprint: "JobFingerprint", job: str) -> "dict[str, str]":
        """Raise an error if the job's digest is not the planned one, and return the record for the metadata of its output."""
        fingerprint.check(self.expected, job)
        return fingerprint.record()

    def check_tables(self, names: "Iterable[str]") -> None:
        """Raise an error if a table was not written for the current plan."""
        from rankfall.report import tables

        for name in names:
            tables.check_made(Path(self.outputs.table(name)), self.fingerprints.table(name).digest)


def add_arguments(parser: argparse.ArgumentParser, required: bool = True) -> None:
    parser.add_argument("--config", type=Path, required=required, help="the benchmark's config, YAML or JSON")
    parser.add_argument("--results", type=Path, help="folder of results; by default the one that the config names")
    parser.add_argument(
        "--expect", metavar="DIGEST", help="digest of the job in the run's plan; stop if it differs now"
    )
    parser.add_argument(
        "--package", type=Path, metavar="FOLDER", help="folder of the run's `rankfall` package; stop if this is another"
    )


def make_plan(
    args: argparse.Namespace,
    read: "Callable[[WrittenPlan], Slice] | None" = None,
    state: "Callable[[JobFingerprints], JobFingerprint] | None" = None,
) -> Planned:
    """Plan a job, and check that it uses the same package as the run. `read` selects the job's cells from the plan that the run has
    written; `state` returns the job's fingerprint. Without them the job needs all cells."""
    import rankfall
    from rankfall.errors import RankfallError
    from rankfall.run.plan import make_plan

    here = Path(rankfall.__file__).parent
    if args.package is not None and here.resolve() != args.package.resolve():
        raise RankfallError(
            f"this job runs the package in {here}, and was planned by the one in {args.package}: something puts another "
            f"`rankfall` first (a folder of that name where Snakemake was started, or PYTHONPATH in the job's start-up files)"
        )
    own = None
    if args.expect is not None and read is not None and state is not None:
        own = _load_own_part(args, read, state)
    if own is not None:
        return own
    plan = make_plan(args.config)
    return Planned(plan, args.results or Path(plan.config.results), args.expect)


def _load_own_part(
    args: argparse.Namespace,
    read: "Callable[[WrittenPlan], Slice]",
    state: "Callable[[JobFingerprints], JobFingerprint]",
) -> Planned | None:
    """Return the job's part of the plan; None if it cannot be read or differs from what was planned."""
    from rankfall.errors import RankfallError
    from rankfall.run.plan import make_plan
    from rankfall.run.plan.written import WrittenPlan

    written = WrittenPlan.load_beside(args.config)
    if written is None:
        return None
    try:
        plan = make_plan(args.config, read(written))
        own = Planned(plan, args.results or Path(plan.config.results), args.expect, written)
        why = "" if state(own.fingerprints).digest == args.expect else "what it makes is not what was planned"
    except (RankfallError, LookupError, TypeError, ValueError) as error:
        why = str(error)
    if not why:
        return own
    print(f"planning the whole grid instead of this job's part: {why}", file=sys.stderr)
    return None
