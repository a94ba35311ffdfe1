"""What must hold before a job trains anything: components that pass their trial, and engines that compute what autograd does."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from rankfall.run.jobs.agreement import check_agreement
from rankfall.run.jobs.cells import dataset_of
from rankfall.run.jobs.trials import find_refused_cells

if TYPE_CHECKING:
    from rankfall.run.plan.cell import Cell
    from rankfall.run.store import Store


@dataclass(frozen=True)
class Checked:
    """`passed`: cells to train; `refused`: key -> why a cell is not; `untraced`: groups that the machine was to train and cannot trace."""

    passed: "list[Cell]"
    refused: Mapping[str, str]
    untraced: set[str]


def check_cells(cells: "Sequence[Cell]", store: "Store", device: torch.device, note: Callable[[str], None]) -> Checked:
    """Raise where an engine computes something else; a component that is refused takes its own cells with it."""
    refused = find_refused_cells(cells, store, note, lambda cell: dataset_of(cell, store))
    passed = [cell for cell in cells if cell.key not in refused]
    untraced = check_agreement(passed, store, device, note)
    return Checked(passed, refused, untraced)
