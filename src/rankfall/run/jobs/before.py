"""Checks before a job trains anything: engines run, components pass their trial, and the machine's numbers agree with autograd's."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from rankfall.errors import RankfallError
from rankfall.run.jobs.agreement import check_agreement, machine_of
from rankfall.run.jobs.trials import find_refused_cells
from rankfall.run.plan.engines import MACHINE, MACHINE_GPU, check_installed

if TYPE_CHECKING:
    from rankfall.run.plan.cell import Cell
    from rankfall.run.store import Store


@dataclass(frozen=True)
class Checked:
    """Cells to train (`passed`), why each other cell is not trained (`refused`, by key), and groups that the machine cannot trace
    (`untraced`)."""

    passed: "list[Cell]"
    refused: Mapping[str, str]
    untraced: set[str]


def prepare_engines(cells: "Sequence[Cell]", missing: "Sequence[Cell]") -> None:
    """Raise if an engine of these cells cannot run, and compile the kernels for the missing cells. Neither failure is a cell's fault."""
    check_installed({cell.engine for cell in cells})
    if any(cell.engine == MACHINE for cell in missing):
        from rankfall.train.machine.engine import prepare

        prepare()


def check_device(cells: "Sequence[Cell]", device: torch.device) -> None:
    """Raise if a CPU would train cells meant for a GPU. Measuring jobs retrain lost cells and may run without a GPU."""
    there = [cell for cell in cells if cell.engine == MACHINE_GPU]
    if there and machine_of(MACHINE_GPU).device_type != device.type:
        raise RankfallError(
            f"compute.device: cuda, but there is no GPU here, and {len(there)} networks that are trained on one are not in "
            "the store; run the job where there is one, or say `compute: {device: cpu}`, which makes other keys"
        )


def check_cells(cells: "Sequence[Cell]", store: "Store", device: torch.device, note: Callable[[str], None]) -> Checked:
    """Raise if an engine has no device or disagrees with autograd. A refused component only excludes its own cells."""
    check_device(cells, device)
    refused = find_refused_cells(cells, store, note)
    passed = [cell for cell in cells if cell.key not in refused]
    return Checked(passed, refused, check_agreement(passed, store, device, note))
