"""A measure is tried in the job that it works for: its first cell is measured again, after another, and must give the same rows. And the
second is measured where nothing was measured before: by the author's files imported anew.

Cells are measured one by one, so that no number can depend on what is in its stack. It can still depend on what was measured before, if the
measure keeps something between calls, or on nothing at all, if it draws numbers from elsewhere than `context.stream`. What the first cell
leaves spoils the second and not itself, and may lie where no list of what is kept would look. A measure that was tried is remembered in the
store by its code, its options, this module, and torch: it costs two cells, once. One that comes with this package costs one: its tests hold
that nothing measured before changes it.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from rankfall import components
from rankfall.disk import StoreError
from rankfall.errors import describe_error
from rankfall.measure.context import Rows, Uninterrupted
from rankfall.run.guards.declared import Unproved
from rankfall.run.guards.process import components_of
from rankfall.run.guards.trial.candidate import Candidate
from rankfall.run.guards.trial.watch import find_change, memory
from rankfall.run.keys.fingerprint import Sources
from rankfall.run.keys.loader import module_of
from rankfall.run.plan.cell import digest
from rankfall.run.store.trials import Trials

if TYPE_CHECKING:
    from rankfall.run.jobs.measuring import MeasuringWork
    from rankfall.run.plan.cell import Cell

REMEDY = "draw random numbers from context.stream, and keep nothing between calls"


class Repeats:
    """The trial of one job's measure; `over` where it was passed, now or in earlier jobs. `finish` raises `Refused`."""

    def __init__(self, job: "MeasuringWork") -> None:
        self.job, self.store = job, Trials(job.store.root)
        own = Sources().fingerprint(["rankfall.run.jobs.again"])
        self.keys = {
            name: digest(f"measured {name}", own, str(torch.__version__), job.measure.key) for name in ("again", "anew")
        }
        self.passed = {name for name, key in self.keys.items() if self.store.holds(key)}
        if not components_of(job.measure.code):
            self.passed.add("anew")
        self.seen: list[tuple[Cell, Rows]] = []  # the first two

    @property
    def over(self) -> bool:
        return self.passed == self.keys.keys()

    def look(self, cell: "Cell", rows: Rows) -> None:
        """The rows of a cell that was just measured. The trial follows the second cell of a job."""
        if len(self.seen) < 2:
            self.seen.append((cell, rows))
        if len(self.seen) == 2:
            self.finish()

    def finish(self) -> None:
        """Raise if a cell has other rows now, or anything was kept. Where a job has no second cell, the next one that has tries that."""
        if self.over or not self.seen:
            return
        candidate = Candidate("measure", self.job.measure.component, "f(context, *, ...) to rows")
        if "again" not in self.passed:
            self.measure_again(candidate, *self.seen[0])
        if len(self.seen) == 2 and "anew" not in self.passed:
            self.measure_anew(candidate, *self.seen[1])

    def measure_again(self, candidate: Candidate, cell: "Cell", before: Rows) -> None:
        when, remembered = "when a cell is measured again", memory(candidate, None)
        after = self.rows(candidate, cell, when)
        if kept := find_change(remembered, memory(candidate, None)):
            raise candidate.refusal(f"keeps state between calls: its {kept} changed", REMEDY)
        compare(candidate, before, after, when)
        self.keep("again", cell)

    def measure_anew(self, candidate: Candidate, cell: "Cell", before: Rows) -> None:
        when = "when no other cell was measured before it"
        with import_anew(map(module_of, components_of(self.job.measure.code))):
            try:
                components.load("measure", candidate.component.name)
            except (StoreError, Unproved):
                raise
            except Exception as error:  # what a file registers elsewhere may be registered once alone
                self.passed.add("anew")
                self.job.note(
                    f"{candidate.title} cannot be imported twice, so it was not tried without what it keeps: {describe_error(error)}"
                )
                return
            compare(candidate, before, self.rows(candidate, cell, when), when)
        self.keep("anew", cell)

    def rows(self, candidate: Candidate, cell: "Cell", when: str) -> Rows:
        """Of a cell that is measured once more."""
        try:
            return self.job.rows(cell, Uninterrupted())
        except (StoreError, Unproved):
            raise
        except Exception as error:  # a component may raise anything
            raise candidate.refusal(f"raises {describe_error(error)} {when}", REMEDY) from error

    def keep(self, name: str, cell: "Cell") -> None:
        """Remember what was passed, unless code was edited meanwhile."""
        self.job.check([cell])
        self.store.keep(self.keys[name], {"kind": "measure", "name": self.job.measure.component.name})
        self.passed.add(name)


def compare(candidate: Candidate, before: Rows, after: Rows, when: str) -> None:
    if text(after) != text(before):
        raise candidate.refusal(f"gives other rows {when}: {first_difference(before, after)}", REMEDY)


@contextmanager
def import_anew(modules: Iterable[str]) -> Iterator[None]:
    """Within, who imports one of these modules has it as it is when nothing was called yet; afterwards all are as they were."""
    names = list(modules)
    before = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    try:
        yield
    finally:
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(before)
        for name, module in before.items():
            package, _, last = name.rpartition(".")
            if package in sys.modules:
                setattr(sys.modules[package], last, module)


def text(rows: Any) -> str:
    """Rows to compare: every number in full, and NaN equal to itself."""
    return json.dumps(rows, sort_keys=True, default=lambda value: value.item())


def first_difference(before: Rows, after: Rows) -> str:
    """The first difference, in a few words."""
    if len(before) != len(after):
        return f"{len(before)} rows, then {len(after)}"
    for number, (one, other) in enumerate(zip(before, after), 1):
        for name in one.keys() | other.keys():
            if text(one.get(name)) != text(other.get(name)):
                return f"{name} of row {number} is {one.get(name)}, then {other.get(name)}"
    return "in another order"
