"""Common to the commands that jobs run: the plan, the folder of results, and the check that the plan has not changed.

A job of a run finds beside its configuration what the run has planned, reads what is its own and makes that part of the plan anew, of the
configuration and the sources as they are now. If its digest is then the one that it was told to expect, all is as it was planned. In any
other case (nothing is there, a file is damaged, something was edited, nobody said what to expect) the whole grid is planned, which says
what is wrong.
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
    """A job's own plan."""

    plan: "Plan"
    results: Path
    expected: str | None
    written: "WrittenPlan | None" = None  # where the plan is of this job's cells alone

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
        """An error if the job's digest is not the planned one. Returns the record that its output keeps."""
        fingerprint.check(self.expected, job)
        return fingerprint.record()

    def check_tables(self, names: "Iterable[str]") -> None:
        """Stop before reading a table that was made for something else than the plan asks for."""
        from rankfall.report import tables

        for name in names:
            tables.check_made(Path(self.outputs.table(name)), self.fingerprints.table(name).digest)


def add_arguments(parser: argparse.ArgumentParser, required: bool = True) -> None:
    parser.add_argument("--config", type=Path, required=required, help="the benchmark's config, YAML or JSON")
    parser.add_argument("--results", type=Path, help="folder of results; by default the one that the config names")
    parser.add_argument(
        "--expect", metavar="DIGEST", help="of what a run planned; stop if this would make something else"
    )
    parser.add_argument(
        "--package", type=Path, metavar="FOLDER", help="where the run's own `rankfall` is; stop if this is another"
    )


def make_plan(
    args: argparse.Namespace,
    read: "Callable[[WrittenPlan], Slice] | None" = None,
    state: "Callable[[JobFingerprints], JobFingerprint] | None" = None,
) -> Planned:
    """The plan, made by the same package as the run's. `read`: the cells that the job needs, of a plan that the run has written; `state`:
    what the job makes. Without them it needs all cells."""
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
    """The part of the plan that is the job's; None where it cannot be read or is not what was planned."""
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
