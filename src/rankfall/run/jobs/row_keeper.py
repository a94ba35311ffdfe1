"""Check rows before they are stored, and save them regularly, and also when the job ends early. Keep the rows of a measure's items.

The job that uses a measure tries it: it measures its first cell again after the second and compares the rows. Cells are measured one at a
time, so no number depends on the stack. It can still depend on earlier measurements, if the measure keeps state between calls, or on
chance, if it does not draw from `context.stream`. The store keeps a passed trial under the measure's key and the version of torch, so that
a trial costs the time of one cell, once.

The rows of an item are stored under the components that build it (`KeptItems`). After an edit or an addition of a component, the measure
computes only the items that use it. An item's key holds the item, its components with their options, code and files, the measure's options
except those that choose items (its facts PARTS and CHOOSES), and the measure's code except the components that it might use for other
items. During the measurement of an item, no other component may be loaded.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

import torch

from rankfall import components
from rankfall.design import Component
from rankfall.disk import StoreError
from rankfall.errors import RankfallError, describe_error
from rankfall.measure.context import Parts, Rows, Uninterrupted
from rankfall.report.conform import conform
from rankfall.report.rows import cell_columns
from rankfall.report.schema import CELL_COLUMNS, schema
from rankfall.run.guards import Unproved, check_job, restrict_reads
from rankfall.run.jobs.engine import stack_id
from rankfall.run.keys import files_of
from rankfall.run.plan import MeasurePlan
from rankfall.run.plan.cell import Cell, digest
from rankfall.run.store import Store
from rankfall.run.store.rows import ITEMS
from rankfall.sources.fingerprint import Sources
from rankfall.trial.candidate import Candidate, Refused

if TYPE_CHECKING:
    from rankfall.run.jobs.measuring import MeasuringWork

REMEDY = "draw random numbers from context.stream, and keep nothing between calls"


class RowKeeper:
    """The rows of cells by measure key. None is stored before the measure passed its trial."""

    def __init__(self, job: "MeasuringWork", done: int, total: int) -> None:
        self.job, self.done, self.total = job, done, total
        self.kept: dict[str, Rows] = {}
        self.unsaved: dict[str, Rows] = {}
        self.repeats, self.saved = Repeats(job), time.monotonic()

    def add(self, key: str, cell: Cell, rows: Rows) -> None:
        """Add the rows of a cell, and save all unsaved rows if the time has come."""
        check_numbers(cell, rows, self.job)
        self.unsaved[key] = rows
        self.repeats.take(cell, rows)
        due = time.monotonic() - self.saved >= self.job.settings.checkpoint_seconds  # limits what a killed job loses
        if due and self.repeats.over:
            self.save()
            self.saved = time.monotonic()

    def save(self) -> None:
        """Save the unsaved rows, then drop their checkpoints."""
        name, store = self.job.measure.component.name, self.job.store
        check_job()
        store.save_rows(name, self.unsaved)
        rows, self.unsaved = self.unsaved, {}
        self.kept |= rows
        for key in rows:
            store.drop_checkpoint(stack_id([key]))
        print(f"{self.job.measure.name}: {self.done + len(self.kept)}/{self.total} measured", flush=True)


@contextmanager
def keep_rows(job: "MeasuringWork", done: int, total: int) -> Iterator[RowKeeper]:
    """Yield a `RowKeeper` for the measurement of cells. If the measure is refused, no unsaved rows are stored."""
    keeper = RowKeeper(job, done, total)
    try:
        yield keeper
        keeper.repeats.finish()
    except Refused:
        keeper.unsaved.clear()
        raise
    finally:
        if keeper.unsaved:
            keeper.save()


def check_numbers(cell: Cell, rows: Rows, job: "MeasuringWork") -> None:
    """Raise if rows of a cell do not fit their table. The check is for each cell, so that the message can name the cell."""
    name, table = job.measure.name, schema(job.measure.table)
    taken = {column.name for column in CELL_COLUMNS} - {"processor"} if table.inferred else set()
    if duplicates := sorted(taken.intersection(column for row in rows for column in row)):
        raise RankfallError(
            f"measure {name} gives a column {duplicates[0]!r}, which every table of networks has already\nfix: give it another name"
        )
    try:
        conform(job.measure.table, [cell_columns(cell, {"status": "done"}) | row for row in rows])
    except RankfallError as error:
        marked = re.search(r"column '(\w+)' has a NaN", str(error))
        fix = "\nfix: declare `{} float nan` in its columns, or give None there and declare `float?`"
        fix = fix.format(marked[1]) if marked else ""
        raise RankfallError(f"measure {name}, {cell.title}: its rows are not kept: {error}{fix}") from None


class Repeats:
    """The trial of a job's measure. `over` is true once it passed, in this job or an earlier one. `finish` raises `Refused`."""

    def __init__(self, job: "MeasuringWork") -> None:
        self.job, self.store = job, job.store
        self.key = digest("measured again", str(torch.__version__), job.measure.key)
        self.over = self.store.has_passed(self.key)
        self.seen: list[tuple[Cell, Rows]] = []  # the first two cells

    def take(self, cell: Cell, rows: Rows) -> None:
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
            after = self.job.measure_cell(cell, Uninterrupted())
        except (StoreError, Unproved):
            raise
        except Exception as error:  # a component may raise anything
            raise candidate.refusal(f"raises {describe_error(error)} {when}", REMEDY) from error
        if text(after) != text(before):
            raise candidate.refusal(f"gives other rows {when}: {first_difference(before, after)}", REMEDY)
        check_job()
        self.store.keep_trial(self.key, {"kind": "measure", "name": self.job.measure.component.name})
        self.over = True


def text(rows: Any) -> str:
    """Return rows as text that can be compared: every number in full, and NaN equal to itself."""
    return json.dumps(rows, sort_keys=True, default=lambda value: value.item())


def first_difference(before: Rows, after: Rows) -> str:
    """Describe the first difference in a few words."""
    if len(before) != len(after):
        return f"{len(before)} rows, then {len(after)}"
    pairs = enumerate(zip(before, after, strict=True), 1)
    number, first, second = next((number, *pair) for number, pair in pairs if text(pair[0]) != text(pair[1]))
    name = next(name for name in first.keys() | second.keys() if text(first.get(name)) != text(second.get(name)))
    return f"{name} of row {number} is {first.get(name)}, then {second.get(name)}"


class KeptItems:
    """The stored rows of a measure's items, a `RowCache`, in a job with fixed keys."""

    def __init__(self, measure: MeasurePlan, store: Store) -> None:
        self.measure, self.store, self.sources = measure, store, Sources()
        self.name = measure.component.name + ITEMS
        self.codes: dict[tuple[str, Component], dict[str, str]] = {}

    def keys(self, name: str, items: Sequence[Any], parts: Sequence[Parts]) -> list[str]:
        """Return the key of each item; `name` is that of a call of `Context.rows`, `parts` the components of each item."""
        facts = components.facts_of("measure", self.measure.component.name)
        choices = {*facts.get("PARTS", {}), *facts.get("CHOOSES", ())}
        options = {option: value for option, value in self.measure.options.items() if option not in choices}
        common = digest("items", self.measure.component.name, name, options, dict(self.measure.always))
        plain = [asdict(item) if is_dataclass(item) else item for item in items]  # type: ignore[call-overload, arg-type]
        identities = {group: sorted(map(self.identity, group)) for group in set(parts)}
        return [digest(common, item, identities[group]) for item, group in zip(plain, parts, strict=True)]

    def find(self, keys: Sequence[str]) -> dict[str, Rows]:
        """Return key -> stored rows of items."""
        stored = self.store.find_rows(self.name, keys)
        print(f"{self.measure.name}: {len(keys)} items: {len(stored)} in store", flush=True)
        return stored

    def within(self, parts: Parts) -> AbstractContextManager[None]:
        """Return a context for the measurement of items built from these components.

        Items without components name networks by their keys, which cover what these load."""
        if not parts:
            return nullcontext()
        codes = [self.measure.always, *map(self.code_of, parts)]
        return restrict_reads({name: digest for code in codes for name, digest in code.items()})

    def save(self, rows: Mapping[str, Rows]) -> None:
        """Store rows that are not empty. Rows are empty if an optional package is missing, which may be installed later."""
        if full := {key: item_rows for key, item_rows in rows.items() if item_rows}:
            check_job()
            self.store.save_rows(self.name, full)

    def identity(self, part: tuple[str, Component]) -> str:
        """Return the digest of a component with its options, code and files."""
        kind, component = part
        return digest(kind, component.name, component.options, self.code_of(part))

    def code_of(self, part: tuple[str, Component]) -> dict[str, str]:
        """Return the digests of a component's code and files. All of them must be in the key of the whole measure."""
        if part not in self.codes:
            kind, component = part
            files = files_of(kind, component, f"measures.{self.measure.name}")
            self.codes[part] = self.sources.code_files([components.module_of(kind, component)]) | files
            if not self.codes[part].items() <= self.measure.code.items():
                raise Unproved(
                    f"measure {self.measure.name}: an item is made of {kind} {component}, which is not in the measure's key, so nothing is "
                    f"kept; name it in BUILDS, or in an option that is one of its PARTS"
                )
        return self.codes[part]
