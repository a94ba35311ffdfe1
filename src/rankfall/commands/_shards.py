"""Train or measure a shard and write its tables, for the commands of single jobs."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankfall.commands._planned import Planned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rankfall.run.jobs.engine import Settings
    from rankfall.run.plan.cell import Cell
    from rankfall.run.store import Store


def run_job(
    own: Planned, codes: "Iterable[Mapping[str, str]]", work: "Callable[[Shards], None]", insist: bool = True
) -> int:
    """Run `work` on the configured device and return the exit code. Users' components may read only the files in `codes`. With `insist`, a
    missing GPU is an error; without, the CPU replaces it. A signal stops the work after a checkpoint."""
    from rankfall.run.guards.unchanged import prove_code

    compute = own.plan.config.compute
    with prove_code(codes, own.results):
        from rankfall.run.jobs.engine import INTERRUPTED, Interrupted, Settings
        from rankfall.run.store import Store
        from rankfall.train.device import prepare

        device = prepare(compute.device, compute.threads, insist=insist)
        settings = Settings(device, compute.stack, compute.checkpoint_seconds)
        try:
            work(Shards(own, Store(own.results / "store"), settings))
        except Interrupted as reason:
            print(f"checkpointed on {reason}; run again to go on", file=sys.stderr)
            return INTERRUPTED
    return 0


@dataclass(frozen=True)
class Shards:
    """The jobs of one process. They share a store, which caches what it has read."""

    own: Planned
    store: "Store"
    settings: "Settings"

    def train(self, task: str, shard: str, out: Path | None, training_out: Path | None) -> None:
        from rankfall.position.attainable import attainable
        from rankfall.report import tables
        from rankfall.report.rows import cell_row
        from rankfall.run.jobs.cells import find_records
        from rankfall.run.jobs.training import train_cells
        from rankfall.run.keys.commit import commit
        from rankfall.train.progress import Progress

        cells = self.own.plan.shard(task, shard)
        about_code = {"commit": commit()}

        def origin(cell: "Cell") -> dict[str, Any]:
            return self.own.plan.origin(cell) | about_code

        def train(missing: "Sequence[Cell]") -> None:
            train_cells(missing, self.store, self.settings, Progress(), origin)

        train(cells)
        epochs = course_rows(cells, self.store, train) if training_out else []
        about = tables.provenance(cell_keys=[cell.key for cell in cells], device=str(self.settings.device))
        if out:
            found = find_records(cells, self.store, train)
            rows = [
                cell_row(cell, found[cell.key].record, attainable(cell.task.task, cell.architecture)) for cell in cells
            ]
            tables.write("cells", rows, out, about)
        if training_out:
            tables.write("training", epochs, training_out, about)

    def measure(self, name: str, task: str, shard: str, out: Path) -> None:
        from rankfall.report import tables
        from rankfall.run.jobs.engine import stop_signals
        from rankfall.run.jobs.measuring import MeasuringWork, measure_cells

        plan = self.own.plan
        cells = plan.measured_cells(name, task, shard)
        with stop_signals() as stopped:
            job = MeasuringWork(plan, plan.measure(name), self.store, self.settings, stopped)
            rows = measure_cells(cells, job)
        about = tables.provenance(cell_keys=[cell.key for cell in cells], device=str(self.settings.device))
        tables.write(job.measure.table, rows, out, about)


def course_rows(
    cells: "Sequence[Cell]", store: "Store", train: "Callable[[Sequence[Cell]], None]"
) -> list[dict[str, Any]]:
    """Return a row for each epoch of each cell's training, read from the store."""
    from rankfall.report.rows import epoch_rows
    from rankfall.run.jobs.cells import load_stacks
    from rankfall.train.history import means
    from rankfall.train.resume import strip_prefix

    by_key = {cell.key: cell for cell in cells}
    rows = []
    for group in sorted({cell.group for cell in cells}):
        for part in load_stacks([cell for cell in cells if cell.group == group], store, train):
            course = strip_prefix("history", part.tensors)
            for member, (key, record) in enumerate(zip(part.keys, part.records)):
                rows += epoch_rows(by_key[key], record, means(course, member))
    return rows
