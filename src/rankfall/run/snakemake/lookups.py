"""Which jobs have nothing to compute: all their cells are in the store, and for a measure all rows. Their tables are written without a
job of their own.

Only the process that runs the jobs looks, and only for jobs whose tables are missing or out of date: a plan does not depend on the disk.
"""

from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from rankfall.run.plan.build import Plan
from rankfall.run.plan.cell import Cell

FINISHED = ("done", "diverged")  # a cell that failed is tried again


class ShardJob(NamedTuple):
    """Trains the cells of a shard, or measures them."""

    task: str
    shard: str
    measure: str = ""  # by its name in the configuration; nothing: trains

    @property
    def place(self) -> tuple[str, str]:
        return self.task, self.shard


class InStore:
    """The cells and rows of a plan that the store has; headers alone are read, when they are first asked for."""

    def __init__(self, plan: Plan, results: Path | str) -> None:
        self.plan, self.root = plan, Path(results) / "store"
        self._rows: dict[str, frozenset[str]] = {}

    def has(self, job: ShardJob) -> bool:
        """Whether the store has all results of a job."""
        return not self.left(job)

    def left(self, job: ShardJob) -> list[Cell]:
        """Return the cells of a job whose results the store has not."""
        if not job.measure:
            return [cell for cell in self.plan.shard(*job.place) if self.statuses.get(cell.key) not in FINISHED]
        measured = self._measured(job.measure)
        return [
            cell
            for cell in self.plan.measured_cells(job.measure, *job.place)
            if (status := self.statuses.get(cell.key)) not in FINISHED
            or (status == "done" and self.plan.measure_key(job.measure, cell) not in measured)
        ]

    @cached_property
    def statuses(self) -> dict[str, str]:
        """Cell key -> how it ended."""
        if not self.root.is_dir():
            return {}
        from rankfall.run.store import Store

        cells = self.plan.cells
        found = Store(self.root).find_cells((cell.key for cell in cells), {cell.group for cell in cells})
        return {key: record.status for key, record in found.items()}

    def _measured(self, name: str) -> frozenset[str]:
        """Return the keys of the rows that the store has of a measure."""
        component = self.plan.measures[name].component.name
        if component not in self._rows:
            from rankfall.run.store import Store

            there = Store(self.root).rows.find_covered(component) if self.root.is_dir() else ()
            self._rows[component] = frozenset(there)
        return self._rows[component]
