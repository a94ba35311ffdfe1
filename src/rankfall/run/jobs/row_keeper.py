"""Checks of rows before they are stored, and the times at which they are saved: regularly, and also when the job ends early."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rankfall.errors import RankfallError
from rankfall.measure.context import Rows
from rankfall.report.cell_columns import cell_columns
from rankfall.report.conform import conform
from rankfall.report.schema import CELL_COLUMNS, schema
from rankfall.run.jobs.again import Repeats
from rankfall.run.jobs.engine import stack_id
from rankfall.trial.candidate import Refused

if TYPE_CHECKING:
    from rankfall.run.jobs.measuring import MeasuringWork
    from rankfall.run.plan.cell import Cell


class RowKeeper:
    """Rows by measure key, of cells that are measured one after another. None is stored before the measure has passed its trial."""

    def __init__(self, cells: "Sequence[Cell]", job: "MeasuringWork") -> None:
        self.cells, self.job = cells, job
        self.kept: dict[str, Rows] = {}
        self.unsaved: dict[str, Rows] = {}
        self.repeats, self.saved = Repeats(job), time.monotonic()

    def add(self, key: str, cell: "Cell", rows: Rows) -> None:
        check_numbers(cell, rows, self.job)
        self.unsaved[key] = rows
        self.repeats.look(cell, rows)
        due = time.monotonic() - self.saved >= self.job.settings.checkpoint_seconds  # limits what a killed job loses
        if due and self.repeats.over:
            self.save()
            self.saved = time.monotonic()

    def save(self) -> None:
        """Save the unsaved rows, then drop their checkpoints."""
        name, store = self.job.measure.component.name, self.job.store
        self.job.check(self.cells)
        store.save_rows(name, self.unsaved)
        rows, self.unsaved = self.unsaved, {}
        self.kept |= rows
        for key in rows:
            store.drop_checkpoint(stack_id([key]))
        print(f"{self.job.measure.name}: {len(self.kept)}/{len(self.cells)} measured", flush=True)


@contextmanager
def keep_rows(cells: "Sequence[Cell]", job: "MeasuringWork") -> Iterator[RowKeeper]:
    """Return a context for the measurement of these cells. If the measure is refused, no rows are stored."""
    rows = RowKeeper(cells, job)
    try:
        yield rows
        rows.repeats.finish()
    except Refused:
        rows.unsaved.clear()
        raise
    finally:
        if rows.unsaved:
            rows.save()


def check_numbers(cell: "Cell", rows: Rows, job: "MeasuringWork") -> None:
    """Raise if rows of a cell do not fit their table. A check of the whole table could not name the cell."""
    name, table = job.measure.name, schema(job.measure.table)
    taken = {column.name for column in CELL_COLUMNS} - {"processor"} if table.inferred else set()
    if mine := sorted(taken.intersection(column for row in rows for column in row)):
        raise RankfallError(
            f"measure {name} gives a column {mine[0]!r}, which every table of networks has already\nfix: give it another name"
        )
    for column in table.columns:
        for number, row in enumerate(rows):
            value = row.get(column.name)
            if column.type == "float" and not column.nan and value is not None and value != value:
                raise RankfallError(
                    f"measure {name} gives NaN as {column.name!r} of {cell.title} (its row {number}), so its rows are not "
                    f"kept; give a number, or None with a reason where the column allows it"
                )
    try:
        conform(job.measure.table, [cell_columns(cell, {"status": "done"}) | row for row in rows])
    except RankfallError as error:
        raise RankfallError(f"measure {name}, {cell.title}: its rows are not kept: {error}") from None
