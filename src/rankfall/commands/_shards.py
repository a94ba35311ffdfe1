"""Training or measuring a shard and writing its tables, for the commands of single jobs and for `lookup`."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankfall.commands._planned import Planned

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rankfall.jobs.engine import Settings
    from rankfall.plan.cell import Cell
    from rankfall.store import Store


@dataclass(frozen=True)
class Shards:
    """The jobs of one process."""

    own: Planned
    store: "Store"
    settings: "Settings"

    def train(self, task: str, shard: str, made: dict[str, str], out: Path | None, training_out: Path | None) -> None:
        """`made` is the record that the tables keep of what they were made from."""
        from rankfall.code.commit import commit
        from rankfall.jobs.training import train_cells
        from rankfall.report import tables
        from rankfall.train.progress import Progress

        cells = self.own.plan.shard(task, shard)
        about_code = {"commit": commit()}

        def origin(cell: "Cell") -> dict[str, Any]:
            return self.own.plan.origin(cell) | about_code

        def train(missing: "Sequence[Cell]") -> None:
            train_cells(missing, self.store, self.settings, Progress(), origin)

        train(cells)
        epochs = epoch_rows(cells, self.store, train) if training_out else []
        about = tables.provenance(cell_keys=[cell.key for cell in cells], device=str(self.settings.device)) | made
        if out:
            tables.write("cells", cell_rows(cells, self.store, train), out, about)
        if training_out:
            tables.write("training", epochs, training_out, about)

    def measure(self, name: str, task: str, shard: str, made: dict[str, str], out: Path) -> None:
        from rankfall.jobs.engine import stop_signals
        from rankfall.jobs.measuring import MeasuringWork, measured
        from rankfall.report import tables

        plan = self.own.plan
        cells = plan.measured_cells(name, task, shard)
        with stop_signals() as stopped:
            job = MeasuringWork(plan, plan.measure(name), self.store, self.settings, stopped)
            rows = measured(cells, job)
        about = tables.provenance(cell_keys=[cell.key for cell in cells], device=str(self.settings.device)) | made
        tables.write(job.measure.table, rows, out, about)


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
    from rankfall.report.cell_columns import cell_columns
    from rankfall.train.history import means
    from rankfall.train.resume import without

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
