"""A measuring job: find the stored rows, measure missing cells one at a time, and save the rows regularly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from rankfall import components
from rankfall.disk import StoreError
from rankfall.errors import RankfallError, frames_of_users
from rankfall.measure.apply import apply
from rankfall.measure.context import Context, Rows
from rankfall.report import tables
from rankfall.report.rows import measured_rows
from rankfall.run.guards import Unproved, check_files, check_job
from rankfall.run.jobs.cells import datasets_of, find_records, load_stacks, shape_of, stack_data
from rankfall.run.jobs.checks import refuse_parts
from rankfall.run.jobs.engine import (
    Interrupted,
    Settings,
    StackCheckpoint,
    Stopped,
    describe_failure,
    raise_if_stopped,
    stack_id,
    stacks,
)
from rankfall.run.jobs.processor import processor_of
from rankfall.run.jobs.progress import Progress
from rankfall.run.jobs.row_keeper import KeptItems, keep_rows
from rankfall.run.jobs.training import TrainingWork
from rankfall.run.jobs.workers import Workers, read_stacks
from rankfall.run.plan import MeasurePlan, Plan
from rankfall.run.plan.cell import Cell
from rankfall.run.store import Store, join
from rankfall.tasks._dataset import Dataset
from rankfall.train.loop import Checkpoint

Input = tuple[dict[str, Tensor], Dataset]  # the weights (1, ...) and data of a cell


@dataclass(frozen=True)
class MeasuringWork:
    """The work of a measuring job, which measures a cell at a time."""

    plan: Plan
    measure: MeasurePlan
    store: Store
    settings: Settings
    stopped: Stopped
    inputs: dict[str, Input] = field(default_factory=dict)  # cell key -> inputs that are read and not yet used

    def key(self, cell: Cell) -> str:
        """Return the key under which the rows of a cell are stored."""
        return self.plan.measure_key(self.measure.name, cell)

    def checkpoint(self, key: str) -> StackCheckpoint:
        return StackCheckpoint(self.store, [key], self.settings.checkpoint_seconds, self.stopped)

    def measure_or_raise(self, cell: Cell) -> Rows:
        """Measure a cell, and raise an error that names it if the measure fails."""
        raise_if_stopped(self.stopped)
        try:
            return self.measure_cell(cell, self.checkpoint(self.key(cell)))
        except (Interrupted, StoreError, Unproved):
            raise
        except Exception as error:  # a component may raise anything
            check_files()  # first: an edit in progress may be the cause
            self.store.drop_checkpoint(stack_id([self.key(cell)]))
            fault = f"measure {self.measure.name} fails at {cell.title}: {describe_failure(error)}"
            raise RankfallError(f"{fault}; what was measured before is kept") from error

    def measure_cell(self, cell: Cell, checkpoint: Checkpoint) -> Rows:
        """Return the rows of a cell, with the name of the processor."""
        weights, dataset = self.inputs.pop(cell.key) if cell.key in self.inputs else self.read([cell])[cell.key]
        data = stack_data([cell], [dataset], self.settings.device)
        bound = components.bound("measure", self.measure.component)

        def measure(context: Context) -> Rows:
            return require_rows(bound(context))

        rows = apply(measure, cell, shape_of(cell, dataset), weights, data, self.settings.device, checkpoint)
        columns = {"processor": processor_of(self.settings.device)}
        return [row | columns for row in rows]

    def read(self, cells: list[Cell]) -> dict[str, Input]:
        """Return cell key -> weights (1, ...) and data, for cells of one group. A file that several cells share is read once."""
        tensors, _ = join(load_stacks(cells, self.store, self.train), [cell.key for cell in cells])
        weights = {name: value.split(1) for name, value in tensors.items() if not name.startswith("history.")}
        datasets = datasets_of(cells, self.store)
        return {
            cell.key: ({name: parts[index] for name, parts in weights.items()}, datasets[index])
            for index, cell in enumerate(cells)
        }

    def train(self, cells: Sequence[Cell]) -> None:
        """Train cells again that were lost or damaged after their training job."""
        settings = replace(self.settings, workers=1)
        TrainingWork(self.store, settings, Progress(), self.plan.origin).train_cells(cells)


def measure_cells(cells: Sequence[Cell], job: MeasuringWork) -> Rows:
    """Return the rows of all cells, with the columns that describe each cell. A cell that is not done has one row with the reason."""
    records = find_records(cells, job.store, job.train)
    done = [cell for cell in cells if records[cell.key].status == "done"]
    keys = {cell.key: job.key(cell) for cell in done}
    rows = job.store.find_rows(job.measure.component.name, keys.values())
    missing = [cell for cell in done if keys[cell.key] not in rows]
    count = f"{len(done) - len(missing)} in store, {len(missing)} to measure"
    print(f"{job.measure.name}: {len(cells)} cells: {count}", flush=True)
    settings, measured = job.settings, [0]
    chosen = list(stacks(missing, min(settings.stack, -(-len(missing) // settings.workers) or 1)))
    if settings.workers > 1 and len(chosen) > 1:

        def finish(number: int) -> None:
            measured[0] += number
            print(f"{job.measure.name}: {measured[0]}/{len(missing)} measured", flush=True)

        Workers(settings, job.stopped, lambda: (measured[0], len(missing)), finish).compute(chosen)
        rows |= job.store.find_rows(job.measure.component.name, [keys[cell.key] for cell in missing])
        missing = [cell for cell in missing if keys[cell.key] not in rows]
    rows |= measure_missing(missing, job, 0, len(missing))
    rows_by_cell = {cell.key: rows[keys[cell.key]] for cell in done}
    return [row for cell in cells for row in measured_rows(cell, records[cell.key].record, rows_by_cell.get(cell.key))]


def require_rows(result: Any) -> Rows:
    """Return what a measure returns as rows; raise an error if it is anything else."""
    rows = None if result is None or isinstance(result, Mapping) else list(result)  # a measure may also yield its rows
    if rows is None or not all(isinstance(row, Mapping) for row in rows):
        raise RankfallError(f"it returns {type(result).__name__}; a measure returns a list of rows, each a dict")
    return rows


def measure_as_worker(cells: Sequence[Cell], job: MeasuringWork) -> None:
    """Measure the cells that a job sends."""
    for together, done, total in read_stacks(cells):
        measure_missing(together, job, done, total)


def measure_missing(cells: Sequence[Cell], job: MeasuringWork, done: int, total: int) -> dict[str, Rows]:
    """Return measure key -> rows. They are saved regularly, and also when the job ends early.

    `done` is the number of cells that the whole job measured before, `total` the number of all its missing cells."""
    with keep_rows(job, done, total) as keeper:
        for together in stacks(cells, job.settings.stack):  # read at once, measured one at a time
            job.inputs.update(job.read(together))
            for cell in together:
                keeper.add(job.key(cell), cell, job.measure_or_raise(cell))
    return keeper.kept


def measure_without_cells(job: MeasuringWork) -> Rows:
    """Return the rows of a measure that needs no cells."""
    component, key = job.measure.component, job.plan.measure_key(job.measure.name)
    job.store.announce([], {component.name: [job.measure.key]})
    stored = job.store.find_rows(component.name, [key]) if is_reproducible(component.options) else {}
    if key in stored:
        print(f"{job.measure.name}: in store", flush=True)
        return stored[key]
    refuse_parts(component, job.store, print)
    context = Context(device=job.settings.device)
    if is_reproducible(component.options):
        context = replace(context, checkpoint=job.checkpoint(key), kept=KeptItems(job.measure, job.store))
    rows = rows_of(job, context)
    if rows and is_reproducible(component.options):  # without an optional package, rows are empty
        job.store.save_rows(component.name, {key: rows})
    job.store.drop_checkpoint(stack_id([key]))
    return rows


def is_reproducible(options: Mapping[str, Any]) -> bool:
    """Return whether the key determines the rows. Without a revision, weights of a hub can change from day to day."""
    return options.get("phase") != "pretrained" or options.get("revision") is not None


def measure_tables(job: MeasuringWork, files: Mapping[str, Path]) -> Rows:
    """Return the rows of a measure of tables. Only items of `Context.rows` are stored; the rest is computed as fast as it is looked up."""
    frames = {name: tables.read_frame(file, name) for name, file in files.items()}
    kept = KeptItems(job.measure, job.store)
    return rows_of(job, Context(table=frames.get, device=job.settings.device, kept=kept))


def rows_of(job: MeasuringWork, context: Context) -> Rows:
    """Return the rows of a measure, checked unless they are times."""
    try:
        rows = require_rows(components.bound("measure", job.measure.component)(context))
    except (Interrupted, StoreError, Unproved):
        raise
    except Exception as error:  # a component may raise anything
        check_files()  # first: an edit in progress may be the cause
        if not frames_of_users(error):  # a measure of this package keeps its traceback
            raise
        raise RankfallError(f"measure {job.measure.name} fails: {describe_failure(error)}") from error
    # If all numbers are times, they depend on more than a key holds, and the key already names the timed networks.
    floats = [column for column in tables.schema(job.measure.table).columns if column.type == "float"]
    if not floats or not all(column.provenance for column in floats):
        check_job()
    return rows
