"""Train the cells of one shard that the store does not have yet, in stacks."""

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rankfall.commands import _planned

if TYPE_CHECKING:
    from rankfall.run.jobs.engine import Settings
    from rankfall.run.plan.cell import Cell
    from rankfall.run.store import Store

ARGUMENTS = (
    _planned.ARGUMENTS
    + """
--task NAME           the task's name in the config (required)
--shard NAME          the shard, as `rankfall plan` names it (required)
--out FILE            table of cells to write when all is done
--training-out FILE   table of epochs to write when all is done
--worker              train the stacks that the job sends, and write no tables
"""
)


def run(args: argparse.Namespace) -> int:
    from rankfall.run.plan.written import shard_file

    place = args.task, args.shard
    planned = _planned.plan_job(args, "train", *place, cells=[shard_file(*place)])
    cells = planned.plan.shards[place]
    return _planned.run_job(
        planned, [cell.code for cell in cells], lambda store, settings: train(args, planned, cells, store, settings)
    )


def train(
    args: argparse.Namespace,
    planned: _planned.Planned,
    cells: "Sequence[Cell]",
    store: "Store",
    settings: "Settings",
) -> None:
    """Train the cells and write the tables of cells and of epochs."""
    from rankfall.modules import commit
    from rankfall.position.attainable import attainable
    from rankfall.report import tables
    from rankfall.report.rows import cell_row
    from rankfall.run.jobs.cells import find_records
    from rankfall.run.jobs.progress import Progress
    from rankfall.run.jobs.training import TrainingWork

    about_code = {"commit": commit()}
    work = TrainingWork(store, settings, Progress(), lambda cell: planned.plan.origin(cell) | about_code)
    if args.worker:
        work.serve(cells)
        return
    store.announce(cells)
    work.train_cells(cells)
    epochs = course_rows(cells, store, work.train_cells) if args.training_out else []
    metadata = tables.provenance(cell_keys=[cell.key for cell in cells], device=str(settings.device))
    if args.out:
        records = find_records(cells, store, work.train_cells)
        rows = [
            cell_row(cell, records[cell.key].record, attainable(cell.task.task, cell.architecture)) for cell in cells
        ]
        tables.write("cells", rows, args.out, metadata)
    if args.training_out:
        tables.write("training", epochs, args.training_out, metadata)


def course_rows(
    cells: "Sequence[Cell]", store: "Store", train_missing: "Callable[[Sequence[Cell]], None]"
) -> list[dict[str, Any]]:
    """Return a row for each epoch of each cell's training, read from the store."""
    from rankfall.report.rows import epoch_rows
    from rankfall.run.jobs.cells import load_stacks
    from rankfall.train.loop import means, strip_prefix

    by_key = {cell.key: cell for cell in cells}
    rows = []
    for group in sorted({cell.group for cell in cells}):
        for part in load_stacks([cell for cell in cells if cell.group == group], store, train_missing):
            course = strip_prefix("history", part.tensors)
            for member, (key, record) in enumerate(zip(part.keys, part.records)):
                rows += epoch_rows(by_key[key], record, means(course, member))
    return rows
