"""Common to the commands that jobs run: the plan, the folder of results, and the check that the plan has not changed."""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankfall.plan import Plan
    from rankfall.schedule.outputs import Outputs
    from rankfall.schedule.statements import Statement, Statements


@dataclass(frozen=True)
class Planned:
    """A job's own plan."""

    plan: "Plan"
    results: Path
    expected: str | None

    @property
    def outputs(self) -> "Outputs":
        from rankfall.schedule.outputs import Outputs

        return Outputs.under(self.results)

    @cached_property
    def statements(self) -> "Statements":
        from rankfall.schedule.statements import Statements

        return Statements(self.plan)

    def check(self, statement: "Statement", job: str) -> "dict[str, str]":
        """An error if the job's digest is not the planned one. Returns the record that its output keeps."""
        statement.check(self.expected, job)
        return statement.record()

    def check_tables(self, names: "Iterable[str]") -> None:
        """Stop before reading a table that was made for something else than the plan asks for."""
        from rankfall.report import tables

        for name in names:
            tables.check_made(Path(self.outputs.table(name)), self.statements.table(name).digest)


def add_arguments(parser: argparse.ArgumentParser, required: bool = True) -> None:
    parser.add_argument("--config", type=Path, required=required, help="the benchmark's config, YAML or JSON")
    parser.add_argument("--results", type=Path, help="folder of results; by default the one that the config names")
    parser.add_argument(
        "--expect", metavar="DIGEST", help="of what a run planned; stop if this would make something else"
    )
    parser.add_argument(
        "--package", type=Path, metavar="FOLDER", help="where the run's own `rankfall` is; stop if this is another"
    )


def planned(args: argparse.Namespace) -> Planned:
    """The plan, made by the same package as the run's."""
    import rankfall
    from rankfall.errors import RankfallError
    from rankfall.plan import make_plan

    here = Path(rankfall.__file__).parent
    if args.package is not None and here.resolve() != args.package.resolve():
        raise RankfallError(
            f"this job runs the package in {here}, and was planned by the one in {args.package}: something puts another "
            f"`rankfall` first (a folder of that name where Snakemake was started, or PYTHONPATH in the job's start-up files)"
        )
    plan = make_plan(args.config)
    return Planned(plan, args.results or Path(plan.config.results), args.expect)
