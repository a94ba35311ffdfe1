"""Train the cells of one shard: only what the store does not have, in stacks."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rankfall.plan.cell import Cell
    from rankfall.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, required=True, help="the benchmark's config, YAML or JSON")
    parser.add_argument("--results", type=Path, help="folder of results; by default the one that the config names")
    parser.add_argument("--task", required=True, help="the task's name in the config")
    parser.add_argument("--shard", required=True, help="the shard, as `rankfall plan` names it")
    parser.add_argument("--out", type=Path, help="table of cells to write when all is done")
    parser.add_argument("--training-out", type=Path, help="table of epochs to write when all is done")


def run(args: argparse.Namespace) -> int:
    from rankfall.jobs.training import INTERRUPTED, Interrupted, Settings, train_cells
    from rankfall.plan import make_plan
    from rankfall.report import tables
    from rankfall.store import Store
    from rankfall.train.device import prepare
    from rankfall.train.progress import Progress

    plan = make_plan(args.config)
    cells = plan.shard(args.task, args.shard)
    store = Store((args.results or Path(plan.config.results)) / "store")
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
    about = tables.provenance(cell_keys=[cell.key for cell in cells], device=str(settings.device))
    if args.out:
        tables.write("cells", cell_rows(cells, store, train), args.out, about)
    if args.training_out:
        tables.write("training", epochs, args.training_out, about)
    return 0


def cell_rows(
    cells: "Sequence[Cell]", store: "Store", train: "Callable[[Sequence[Cell]], None]"
) -> list[dict[str, Any]]:
    """How each cell ended."""
    from rankfall.jobs.training import recorded
    from rankfall.report.cell_columns import cell_columns

    own = ("steps", "train_loss", "train_accuracy", "test_loss", "test_accuracy", "chance", "seconds")
    found = recorded(cells, store, train)
    rows = []
    for cell in cells:
        record = found[cell.key].record
        rows.append(cell_columns(cell, record) | {name: record.get(name) for name in own})
    return rows


def epoch_rows(
    cells: "Sequence[Cell]", store: "Store", train: "Callable[[Sequence[Cell]], None]"
) -> list[dict[str, Any]]:
    """The course of each cell's training; an epoch that was not reached has no row."""
    from rankfall.jobs.training import loaded
    from rankfall.report.cell_columns import cell_columns

    by_key = {cell.key: cell for cell in cells}
    rows = []
    for group in sorted({cell.group for cell in cells}):
        for part in loaded([cell for cell in cells if cell.group == group], store, train):
            for member, key in enumerate(part.keys):
                if "history.loss" not in part.tensors:
                    continue
                columns = cell_columns(by_key[key], part.records[member])
                course = {
                    name.removeprefix("history."): part.tensors[name][member].tolist()
                    for name in part.tensors
                    if name.startswith("history.")
                }
                # A targets' kind without right answers has NaN for accuracy, never zero.
                graded = part.records[member]["test_accuracy"] == part.records[member]["test_accuracy"]
                for epoch, asked in enumerate(course["asked"]):
                    if asked == 0:
                        break
                    test_loss, test_accuracy = course["test_loss"][epoch], course["test_accuracy"][epoch]
                    evaluated = test_loss == test_loss
                    rows.append(
                        columns
                        | {
                            "epoch": epoch + 1,
                            "train_loss": course["loss"][epoch] / asked,
                            "train_accuracy": course["right"][epoch] / asked if graded else float("nan"),
                            "test_loss": test_loss if evaluated else None,
                            "test_accuracy": test_accuracy if evaluated else None,
                        }
                    )
    return rows
