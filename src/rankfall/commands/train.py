"""Train the cells of one shard: only what the store does not have, in stacks."""

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankfall.commands import _planned

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rankfall.plan.cell import Cell
    from rankfall.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _planned.add_arguments(parser)
    parser.add_argument("--task", required=True, help="the task's name in the config")
    parser.add_argument("--shard", required=True, help="the shard, as `rankfall plan` names it")
    parser.add_argument("--out", type=Path, help="table of cells to write when all is done")
    parser.add_argument("--training-out", type=Path, help="table of epochs to write when all is done")


def run(args: argparse.Namespace) -> int:
    from rankfall.code.unchanged import proved

    own = _planned.planned(args)
    cells = own.plan.shard(args.task, args.shard)
    with proved((cell.code for cell in cells), own.plan.texts):
        return train_shard(args, own, cells)


def train_shard(args: argparse.Namespace, own: _planned.Planned, cells: "list[Cell]") -> int:
    from rankfall.jobs.engine import INTERRUPTED, Interrupted, Settings
    from rankfall.jobs.training import train_cells
    from rankfall.report import tables
    from rankfall.store import Store
    from rankfall.train.device import prepare
    from rankfall.train.progress import Progress

    plan = own.plan
    made = own.check(own.statements.train(args.task, args.shard), f"train {args.task} {args.shard}")
    store = Store(own.results / "store")
    store.announce(cells)
    compute = plan.config.compute
    settings = Settings(prepare(compute.device, compute.threads), compute.stack, compute.checkpoint_seconds)

    def train(missing: "Sequence[Cell]") -> None:
        train_cells(missing, store, settings, Progress(), plan.origin)

    try:
        train(cells)
        epochs = epoch_rows(cells, store, train) if args.training_out else []
    except Interrupted as reason:
        print(f"checkpointed on {reason}; run again to go on", file=sys.stderr)
        return INTERRUPTED
    about = tables.provenance(cell_keys=[cell.key for cell in cells], device=str(settings.device)) | made
    if args.out:
        tables.write("cells", cell_rows(cells, store, train), args.out, about)
    if args.training_out:
        tables.write("training", epochs, args.training_out, about)
    return 0


def cell_rows(
    cells: "Sequence[Cell]", store: "Store", train: "Callable[[Sequence[Cell]], None]"
) -> list[dict[str, Any]]:
    """How each cell ended."""
    from rankfall.jobs.cells import recorded
    from rankfall.report.cell_columns import cell_columns

    found = recorded(cells, store, train)
    rows = []
    for cell in cells:
        record = found[cell.key].record
        row = cell_columns(cell, record) | {name: record.get(name) for name in ("steps", "chance", "seconds")}
        if "final" in record:  # not of a cell that failed
            row |= {
                f"{split}_{metric}": record["final"][split].get(metric, math.nan)
                for split in ("train", "test")
                for metric in ("loss", "accuracy")
            }
        rows.append(row)
    return rows


def epoch_rows(
    cells: "Sequence[Cell]", store: "Store", train: "Callable[[Sequence[Cell]], None]"
) -> list[dict[str, Any]]:
    """The course of each cell's training. Splits that are evaluated at the end alone stand at the last epoch that was reached."""
    from rankfall.jobs.cells import loaded
    from rankfall.jobs.training import without
    from rankfall.report.cell_columns import cell_columns
    from rankfall.train.history import means

    by_key = {cell.key: cell for cell in cells}
    rows = []
    for group in sorted({cell.group for cell in cells}):
        for part in loaded([cell for cell in cells if cell.group == group], store, train):
            course = without("history", part.tensors)
            for member, (key, record) in enumerate(zip(part.keys, part.records)):
                columns = cell_columns(by_key[key], record)
                found = list(means(course, member))
                seen, last = {split for _, split, _, _ in found}, max((epoch for epoch, _, _, _ in found), default=0)
                for split, metrics in record.get("final", {}).items():
                    if split not in seen:
                        found += [(last, split, metric, value) for metric, value in metrics.items()]
                names = ("epoch", "split", "metric", "value")
                rows += [columns | dict(zip(names, values)) for values in found]
    return rows
