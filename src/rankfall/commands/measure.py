"""Measure the networks of one shard: only what the store does not have."""

import argparse
import sys
import time
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

    from rankfall.plan import MeasurePlan, Plan
    from rankfall.plan.cell import Cell
    from rankfall.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, required=True, help="the benchmark's config, YAML or JSON")
    parser.add_argument("--results", type=Path, required=True, help="folder of results; finished work is in its store/")
    parser.add_argument("--measure", required=True, help="the measure's name in the config")
    parser.add_argument("--task", help="the task's name in the config; not for a measure that needs no cells")
    parser.add_argument("--shard", help="the shard, as `rankfall plan` names it")
    parser.add_argument(
        "--tables", type=Path, help="folder of tables, for a measure of tables; default: results' tables/"
    )
    parser.add_argument("--out", type=Path, required=True, help="table to write")


def run(args: argparse.Namespace) -> int:
    from rankfall import components
    from rankfall.plan import make_plan
    from rankfall.report import tables
    from rankfall.store import Store
    from rankfall.train.device import prepare
    from rankfall.train.job import INTERRUPTED, Interrupted, Settings, train_cells
    from rankfall.train.progress import Progress

    plan = make_plan(args.config)
    measure = plan.measure(args.measure)
    store = Store(args.results / "store")
    compute = plan.config.compute
    device = prepare(compute, insist=False)
    if measure.needs == "nothing":
        rows = components.load("measure", measure.component.name)(**measure.component.options)
        tables.write(measure.table, rows, args.out, tables.provenance(device=str(device)))
        return 0
    if measure.needs == "tables":
        folder = args.tables or args.results / "tables"
        given = {name: tables.read_frame(folder / f"{name}.parquet", name) for name in measure.tables}
        rows = components.load("measure", measure.component.name)(given.get, **measure.component.options)
        tables.write(measure.table, rows, args.out, tables.provenance())
        return 0
    cells = plan.measured_cells(args.measure, args.task, args.shard)

    def train(absent: "Sequence[Cell]") -> None:
        train_cells(absent, store, Settings(device, compute.stack, compute.checkpoint_seconds), Progress(), plan.origin)

    try:
        rows = measured(plan, measure, cells, store, device, train)
    except Interrupted as reason:  # while training what the store has lost
        print(f"checkpointed on {reason}; run again to go on", file=sys.stderr)
        return INTERRUPTED
    about = tables.provenance(cell_keys=[cell.key for cell in cells], device=str(device))
    tables.write(measure.table, rows, args.out, about)
    return 0


def measured(
    plan: "Plan",
    measure: "MeasurePlan",
    cells: "Sequence[Cell]",
    store: "Store",
    device: "torch.device",
    train: "Callable[[Sequence[Cell]], None]",
) -> list[dict[str, Any]]:
    """Rows of all cells, with what each cell is; a cell that is not done has one row that says why.

    What the training job left may since have been lost or damaged: `train` makes good what is absent.
    """
    from rankfall.report.cell_columns import cell_columns

    keys_and_groups = [cell.key for cell in cells], {cell.group for cell in cells}
    records = store.find_cells(*keys_and_groups)
    if len(records) < len(cells):
        train([cell for cell in cells if cell.key not in records])
        records = store.find_cells(*keys_and_groups)
    done = [cell for cell in cells if cell.key in records and records[cell.key].status == "done"]
    keys = {cell.key: plan.measure_key(measure.name, cell) for cell in done}
    found = store.find_rows(measure.name, keys.values())
    missing = [cell for cell in done if keys[cell.key] not in found]
    print(
        f"{measure.name}: {len(cells)} cells: {len(done) - len(missing)} in store, {len(missing)} to measure",
        flush=True,
    )
    fresh: dict[str, list[dict[str, Any]]] = {}
    unsaved: dict[str, list[dict[str, Any]]] = {}
    saved = time.monotonic()
    for _, members in groupby(
        sorted(missing, key=lambda cell: (cell.group, cell.seed, cell.key)), lambda cell: cell.group
    ):
        group = list(members)
        for start in range(0, len(group), plan.config.compute.stack):
            part = group[start : start + plan.config.compute.stack]
            unsaved |= {keys[key]: rows for key, rows in measure_stack(measure, part, store, device, train).items()}
            if time.monotonic() - saved >= plan.config.compute.checkpoint_seconds:  # what a killed job loses at most
                store.save_rows(measure.name, unsaved)
                fresh, unsaved, saved = fresh | unsaved, {}, time.monotonic()
                print(f"{measure.name}: {len(fresh)}/{len(missing)} measured", flush=True)
    if unsaved:
        store.save_rows(measure.name, unsaved)
        fresh |= unsaved
    rows = []
    for cell in cells:
        record = records[cell.key].record if cell.key in records else None
        columns = cell_columns(cell, record)
        own = (fresh | found)[keys[cell.key]] if cell.key in keys else [{}]
        rows += [columns | row for row in own]
    return rows


def measure_stack(
    measure: "MeasurePlan",
    cells: "list[Cell]",
    store: "Store",
    device: "torch.device",
    train: "Callable[[Sequence[Cell]], None]",
) -> dict[str, list[dict[str, Any]]]:
    """Rows by cell key, for cells of one group."""
    from rankfall import components
    from rankfall.measures._apply import apply
    from rankfall.store import join
    from rankfall.train.job import dataset_of, shape_of

    keys = [cell.key for cell in cells]
    loaded = store.load_cells(keys, cells[0].group)
    there = {key for stack in loaded for key in stack.keys}
    if len(there) < len(keys):  # damage shows only now; the store has set the file aside
        train([cell for cell in cells if cell.key not in there])
        loaded = store.load_cells(keys, cells[0].group)
    tensors, _ = join(loaded, keys)
    datasets = [dataset_of(cell, store) for cell in cells]
    weights = {name: value for name, value in tensors.items() if not name.startswith("history.")}
    function, options = components.load("measure", measure.component.name), measure.component.options
    rows = apply(function, options, cells, shape_of(cells[0], datasets[0]), weights, datasets, device)
    return dict(zip(keys, rows))
