"""Make a task's data sets, and write the accuracy of guessing on each. One that cannot be made has no rows."""

import argparse
from typing import TYPE_CHECKING, Any

from rankfall.commands import _planned

if TYPE_CHECKING:
    from rankfall.run.plan.cell import Cell

ARGUMENTS = (
    _planned.ARGUMENTS
    + """
--task NAME        the task's name in the config (required)
--out FILE         table of data sets to write (required)
"""
)


def run(args: argparse.Namespace) -> int:
    from rankfall.run.guards import guard_job
    from rankfall.run.plan.written import data_file

    planned = _planned.plan_job(args, "data", args.task, cells=[data_file(args.task)])
    cells = {cell.data_key: cell for cell in planned.plan.cells if cell.task.name == args.task}
    with guard_job((cell.data_code for cell in cells.values()), planned.results):
        return make_data(args, planned, cells)


def make_data(args: argparse.Namespace, planned: _planned.Planned, cells: "dict[str, Cell]") -> int:
    """Make the data sets, write their table and return the exit code."""
    from rankfall.disk import StoreError
    from rankfall.errors import describe_error
    from rankfall.report import tables
    from rankfall.report.labels import many
    from rankfall.report.rows import dataset_rows
    from rankfall.run.guards import Unproved
    from rankfall.run.jobs.cells import dataset_of
    from rankfall.run.store import Store

    store = Store(planned.results / "store")
    rows: list[dict[str, Any]] = []
    store.announce(cells.values())
    count = many(len(cells), "data set")
    print(f"making {count}", flush=True)
    for cell in cells.values():
        try:
            rows += dataset_rows(cell, dataset_of(cell, store))
        except (StoreError, Unproved):
            raise
        except Exception as error:  # whatever a task may raise; training fails its cells with the reason
            print(f"{args.task}, seed {cell.data_seed} has no data set: {describe_error(error)}")
    tables.write("datasets", rows, args.out, tables.provenance())
    seen = max((row["seen"] or 0.0 for row in rows), default=0.0)
    print(f"{args.task}: {count}; at most {seen:.1%} of the test samples are training samples")
    return 0
