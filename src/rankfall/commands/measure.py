"""Measure the networks of one shard: only what the store does not have."""

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import torch

    from rankfall.plan import MeasurePlan, Plan
    from rankfall.plan.cell import Cell
    from rankfall.store import Store

    Rows = list[dict[str, Any]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, required=True, help="the benchmark's config, YAML or JSON")
    parser.add_argument("--results", type=Path, help="folder of results; by default the one that the config names")
    parser.add_argument("--measure", required=True, help="the measure's name in the config")
    parser.add_argument("--task", help="the task's name in the config; not for a measure that needs no cells")
    parser.add_argument("--shard", help="the shard, as `rankfall plan` names it")
    parser.add_argument(
        "--tables", type=Path, help="folder of tables, for a measure of tables; default: results' tables/"
    )
    parser.add_argument("--out", type=Path, required=True, help="table to write")


@dataclass(frozen=True)
class MeasureJob:
    """What all stacks of a measuring job share."""

    plan: "Plan"
    measure: "MeasurePlan"
    store: "Store"
    device: "torch.device"

    def train(self, cells: "Sequence[Cell]") -> None:
        """What the training job left may since have been lost or damaged: make it good."""
        from rankfall.jobs.training import Settings, train_cells
        from rankfall.train.progress import Progress

        compute = self.plan.config.compute
        settings = Settings(self.device, compute.stack, compute.checkpoint_seconds)
        train_cells(cells, self.store, settings, Progress(), self.plan.origin)


def run(args: argparse.Namespace) -> int:
    from rankfall.jobs.training import INTERRUPTED, Interrupted, stop_signals
    from rankfall.plan import make_plan
    from rankfall.report import tables
    from rankfall.store import Store
    from rankfall.train.device import prepare

    plan = make_plan(args.config)
    device = prepare(plan.config.compute.device, plan.config.compute.threads, insist=False)
    results = args.results or Path(plan.config.results)
    job = MeasureJob(plan, plan.measure(args.measure), Store(results / "store"), device)
    about = tables.provenance(device=str(device))
    if job.measure.needs == "nothing":
        rows = measured_freely(job)
    elif job.measure.needs == "tables":
        rows = measured_tables(job, args.tables or results / "tables")
    else:
        cells = plan.measured_cells(args.measure, args.task, args.shard)
        about = tables.provenance(cell_keys=[cell.key for cell in cells], device=str(device))
        try:
            with stop_signals() as stopped:
                rows = measured(cells, job, stopped)
        except Interrupted as reason:
            print(f"checkpointed on {reason}; run again to go on", file=sys.stderr)
            return INTERRUPTED
    tables.write(job.measure.table, rows, args.out, about)
    return 0


def measured_freely(job: MeasureJob) -> "Rows":
    """Rows of a measure that needs no cells."""
    from rankfall import components
    from rankfall.code.unchanged import check_unchanged
    from rankfall.jobs.trials import refuse_parts

    component, key = job.measure.component, job.plan.measure_key(job.measure.name)
    job.store.announce([], {component.name: [job.measure.key]})
    found = job.store.find_rows(component.name, [key]) if lasting(component.options) else {}
    if key in found:
        print(f"{job.measure.name}: in store", flush=True)
        return found[key]
    refuse_parts(component, job.measure.code, job.store, print)
    rows: Rows = components.load("measure", component.name)(**component.options)
    check_unchanged(job.measure.code)
    if rows and lasting(component.options):  # none: something optional is not installed, and may be tomorrow
        job.store.save_rows(component.name, {key: rows})
    return rows


def lasting(options: "Mapping[str, Any]") -> bool:
    """Whether the key tells all that the rows depend on: a hub's weights without a revision are whatever they are today."""
    return options.get("phase") != "pretrained" or options.get("revision") is not None


def measured_tables(job: MeasureJob, folder: Path) -> "Rows":
    """Rows of a measure of tables; they are as quickly computed as looked up."""
    from rankfall import components
    from rankfall.code.unchanged import check_unchanged
    from rankfall.report import tables

    component = job.measure.component
    given = {name: tables.read_frame(folder / f"{name}.parquet", name) for name in job.measure.tables}
    rows: Rows = components.load("measure", component.name)(given.get, **component.options)
    check_unchanged(job.measure.code)
    return rows


def measured(cells: "Sequence[Cell]", job: MeasureJob, stopped: "Callable[[], str | None]") -> "Rows":
    """Rows of all cells, with what each cell is; a cell that is not done has one row that says why."""
    from rankfall.jobs.training import recorded
    from rankfall.report.cell_columns import cell_columns

    job.store.announce(cells, {job.measure.component.name: [job.measure.key]})
    records = recorded(cells, job.store, job.train)
    done = [cell for cell in cells if records[cell.key].status == "done"]
    keys = {cell.key: job.plan.measure_key(job.measure.name, cell) for cell in done}
    found = job.store.find_rows(job.measure.component.name, keys.values())
    missing = [cell for cell in done if keys[cell.key] not in found]
    count = f"{len(done) - len(missing)} in store, {len(missing)} to measure"
    print(f"{job.measure.name}: {len(cells)} cells: {count}", flush=True)
    found |= measure_missing(missing, keys, job, stopped)
    rows = []
    for cell in cells:
        columns = cell_columns(cell, records[cell.key].record)
        rows += [columns | row for row in (found[keys[cell.key]] if cell.key in keys else [{}])]
    return rows


def measure_missing(
    cells: "Sequence[Cell]", keys: "Mapping[str, str]", job: MeasureJob, stopped: "Callable[[], str | None]"
) -> "dict[str, Rows]":
    """Rows by measure key, given by cell key. They are saved from time to time, and whatever ends the job."""
    from rankfall.code.unchanged import check_unchanged
    from rankfall.jobs.training import Interrupted, stacks

    compute = job.plan.config.compute
    fresh: dict[str, Rows] = {}
    unsaved: dict[str, Rows] = {}
    saved = time.monotonic()

    def save() -> None:
        check_unchanged(job.measure.code, *(cell.code for cell in cells))
        job.store.save_rows(job.measure.component.name, unsaved)
        fresh.update(unsaved)
        unsaved.clear()
        print(f"{job.measure.name}: {len(fresh)}/{len(cells)} measured", flush=True)

    try:
        for part in stacks(cells, compute.stack):
            reason = stopped()
            if reason:
                raise Interrupted(f"{reason} between stacks")
            unsaved |= {keys[key]: rows for key, rows in measure_some(part, job).items()}
            if time.monotonic() - saved >= compute.checkpoint_seconds:  # what a killed job loses at most
                save()
                saved = time.monotonic()
    finally:
        if unsaved:
            save()
    return fresh


def measure_some(cells: "list[Cell]", job: MeasureJob) -> "dict[str, Rows]":
    """Rows by cell key of one stack; halved where something fails, until the cell that fails stands alone and can be named."""
    from rankfall.code.unchanged import Edited, check_unchanged
    from rankfall.disk import StoreError
    from rankfall.errors import RankfallError
    from rankfall.jobs.training import Interrupted, reason_of

    try:
        return measure_stack(cells, job)
    except (Interrupted, StoreError, Edited):  # no fault of the cells
        raise
    except Exception as error:  # anything a component may raise
        check_unchanged(job.measure.code, *(cell.code for cell in cells))  # half an edit may well raise
        if len(cells) == 1:
            where = f"{' / '.join(cells[0].labels)}, depth {cells[0].architecture.depth}, seed {cells[0].seed}"
            raise RankfallError(
                f"measure {job.measure.name} fails at {where}: {reason_of(error)}; what was measured before is kept"
            ) from error
        print(f"{reason_of(error)}: halving a stack of {len(cells)}", flush=True)
    half = len(cells) // 2
    return measure_some(cells[:half], job) | measure_some(cells[half:], job)


def measure_stack(cells: "list[Cell]", job: MeasureJob) -> "dict[str, Rows]":
    """Rows by cell key, for cells of one group."""
    from rankfall.jobs.training import dataset_of, loaded, shape_of
    from rankfall.measures._apply import apply
    from rankfall.store import join
    from rankfall.train.stack import bound

    keys = [cell.key for cell in cells]
    tensors, _ = join(loaded(cells, job.store, job.train), keys)
    weights = {name: value for name, value in tensors.items() if not name.startswith("history.")}
    datasets = [dataset_of(cell, job.store) for cell in cells]
    shape = shape_of(cells[0], datasets[0])
    rows = apply(bound("measure", job.measure.component), cells, shape, weights, datasets, job.device)
    return dict(zip(keys, rows))
