"""A training job: check the components of the cells that the store does not have, and train those that pass."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rankfall.run.jobs.checks import check_cells
from rankfall.run.jobs.engine import Interrupted, Settings, stacks, stop_signals
from rankfall.run.jobs.training import find_missing, save_failed, train_cells

if TYPE_CHECKING:
    from rankfall.run.plan.cell import Cell
    from rankfall.run.store import Store
    from rankfall.train.progress import Progress


def train_shard(
    cells: "Sequence[Cell]",
    store: "Store",
    settings: Settings,
    progress: "Progress",
    origin: "Callable[[Cell], dict[str, Any]]",
) -> None:
    """Train the missing cells, and store a cell whose component cannot be used as failed, with the reason."""
    missing = find_missing(cells, store)
    with stop_signals() as stopped:
        refused = check_cells(missing, store, settings.device, progress.note) if missing else {}
    if reason := stopped():
        raise Interrupted(f"{reason} before training")
    for stack in stacks([cell for cell in missing if cell.key in refused], settings.stack):
        save_failed(stack, [refused[cell.key] for cell in stack], 0.0, store, origin)
    train_cells([cell for cell in cells if cell.key not in refused], store, settings, progress, origin)
