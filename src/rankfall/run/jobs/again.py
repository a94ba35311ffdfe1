"""Trial of a measure in the job that uses it: the job measures its first cell again after the second and compares the rows.

Cells are measured one at a time, so no number depends on the stack. It can still depend on earlier measurements, if the measure keeps state
between calls, or on chance, if it does not draw from `context.stream`. The store keeps a measure that passed under the measure's key, this
module and the version of torch, so the trial costs one cell, once.
"""

import json
from typing import TYPE_CHECKING, Any

import torch

from rankfall.disk import StoreError
from rankfall.errors import describe_error
from rankfall.measure.context import Rows, Uninterrupted
from rankfall.run.guards.reads import Unproved
from rankfall.run.keys.fingerprint import Sources
from rankfall.run.plan.cell import digest
from rankfall.trial.candidate import Candidate

if TYPE_CHECKING:
    from rankfall.run.jobs.measuring import MeasuringWork
    from rankfall.run.plan.cell import Cell

REMEDY = "draw random numbers from context.stream, and keep nothing between calls"


class Repeats:
    """The trial of one job's measure. `over` is true once it has passed, in this job or an earlier one. `finish` raises `Refused`."""

    def __init__(self, job: "MeasuringWork") -> None:
        self.job, self.store = job, job.store
        own = Sources().fingerprint(["rankfall.run.jobs.again"])
        self.key = digest("measured again", own, str(torch.__version__), job.measure.key)
        self.over = self.store.has_passed(self.key)
        self.seen: list[tuple[Cell, Rows]] = []  # the first two

    def look(self, cell: "Cell", rows: Rows) -> None:
        """Take the rows of a cell that was just measured. The trial runs after the second cell of a job."""
        if len(self.seen) < 2:
            self.seen.append((cell, rows))
        if len(self.seen) == 2:
            self.finish()

    def finish(self) -> None:
        """Measure the first cell again and raise if its rows differ."""
        if self.over or not self.seen:
            return
        cell, before = self.seen[0]
        candidate = Candidate("measure", self.job.measure.component, "f(context, *, ...) to rows")
        candidate.load()
        when = "when a cell is measured again"
        try:
            after = self.job.rows(cell, Uninterrupted())
        except (StoreError, Unproved):
            raise
        except Exception as error:  # a component may raise anything
            raise candidate.refusal(f"raises {describe_error(error)} {when}", REMEDY) from error
        if text(after) != text(before):
            raise candidate.refusal(f"gives other rows {when}: {first_difference(before, after)}", REMEDY)
        self.job.check([cell])
        self.store.keep_trial(self.key, {"kind": "measure", "name": self.job.measure.component.name})
        self.over = True


def text(rows: Any) -> str:
    """Return rows as text that can be compared: every number in full, and NaN equal to itself."""
    return json.dumps(rows, sort_keys=True, default=lambda value: value.item())


def first_difference(before: Rows, after: Rows) -> str:
    """Describe the first difference in a few words."""
    if len(before) != len(after):
        return f"{len(before)} rows, then {len(after)}"
    for number, (one, other) in enumerate(zip(before, after), 1):
        for name in one.keys() | other.keys():
            if text(one.get(name)) != text(other.get(name)):
                return f"{name} of row {number} is {one.get(name)}, then {other.get(name)}"
    return "in another order"
