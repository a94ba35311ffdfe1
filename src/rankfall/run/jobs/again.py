"""A measure is tried in the job that it works for: its first cell is measured again, after another, and must give the same rows.

Cells are measured one by one, so that no number can depend on what is in its stack. It can still depend on what was measured before, if the
measure keeps something between calls, or on nothing at all, if it draws numbers from elsewhere than `context.stream`. A measure that was
tried is remembered in the store by its code, its options, this module, and torch: it costs one cell, once.
"""

import json
from typing import TYPE_CHECKING, Any

import torch

from rankfall.disk import StoreError
from rankfall.errors import told
from rankfall.measure.context import Rows, Uninterrupted
from rankfall.run.guards.declared import Unproved
from rankfall.run.guards.trial.candidate import Candidate
from rankfall.run.guards.trial.watch import changed, memory
from rankfall.run.keys.fingerprint import Sources
from rankfall.run.plan.cell import digest
from rankfall.run.store.trials import Trials

if TYPE_CHECKING:
    from rankfall.run.jobs.measuring import MeasuringWork
    from rankfall.run.plan.cell import Cell

REMEDY = "draw random numbers from context.stream, and keep nothing between calls"


class Repeats:
    """The trial of one job's measure; `over` where it was passed, now or in an earlier job. `finish` raises `Refused`."""

    def __init__(self, job: "MeasuringWork") -> None:
        self.job, self.store = job, Trials(job.store.root)
        own = Sources().fingerprint(["rankfall.run.jobs.again"])
        self.key = digest("measured again", own, str(torch.__version__), job.measure.key)
        self.over = self.store.holds(self.key)
        self.first: tuple[Cell, Rows] | None = None

    def look(self, cell: "Cell", rows: Rows) -> None:
        """The rows of a cell that was just measured. With the second cell of a job, the first is measured again."""
        if self.first is None:
            self.first = cell, rows
        else:
            self.finish()

    def finish(self) -> None:
        """Raise if the first cell has other rows now, or anything was kept; a job may have no second cell."""
        if self.over or self.first is None:
            return
        cell, before = self.first
        candidate = Candidate("measure", self.job.measure.component, "f(context, *, ...) to rows")
        remembered = memory(candidate, None)
        try:
            after = self.job.rows(cell, Uninterrupted())
        except (StoreError, Unproved):
            raise
        except Exception as error:  # a component may raise anything
            raise candidate.refused(f"raises {told(error)} when a cell is measured again", REMEDY) from error
        if kept := changed(remembered, memory(candidate, None)):
            raise candidate.refused(f"keeps state between calls: its {kept} changed", REMEDY)
        if text(after) != text(before):
            raise candidate.refused(f"gives other rows when a cell is measured again: {apart(before, after)}", REMEDY)
        self.job.check([cell])
        self.store.keep(self.key, {"kind": "measure", "name": self.job.measure.component.name})
        self.over = True


def text(rows: Any) -> str:
    """Rows to compare: every number in full, and NaN equal to itself."""
    return json.dumps(rows, sort_keys=True, default=lambda value: value.item())


def apart(before: Rows, after: Rows) -> str:
    """The first difference, in a few words."""
    if len(before) != len(after):
        return f"{len(before)} rows, then {len(after)}"
    for number, (one, other) in enumerate(zip(before, after), 1):
        for name in one.keys() | other.keys():
            if text(one.get(name)) != text(other.get(name)):
                return f"{name} of row {number} is {one.get(name)}, then {other.get(name)}"
    return "in another order"
