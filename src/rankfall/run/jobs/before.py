"""What must hold before a job trains anything: engines that run, components that pass their trial, and the numbers of autograd."""

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
    """`passed`: cells to train; `refused`: key -> why a cell is not; `untraced`: groups that the machine was to train and cannot trace."""

    passed: "list[Cell]"
    refused: Mapping[str, str]
    untraced: set[str]


def prepare_engines(cells: "Sequence[Cell]", missing: "Sequence[Cell]") -> None:
    """Raise where an engine of these cells cannot run, and compile the kernels for those that are missing: neither is a cell's fault."""
    check_installed({cell.engine for cell in cells})
    if any(cell.engine == MACHINE for cell in missing):
        from rankfall.train.machine.engine import prepare

        prepare()


def check_device(cells: "Sequence[Cell]", device: torch.device) -> None:
    """Raise where a processor would train what is for a GPU: jobs that measure train what has been lost, and may have none."""
    there = [cell for cell in cells if cell.engine == MACHINE_GPU]
    if there and machine_of(MACHINE_GPU).device_type != device.type:
        raise RankfallError(
            f"compute.device: cuda, but there is no GPU here, and {len(there)} networks that are trained on one are not in "
            "the store; run the job where there is one, or say `compute: {device: cpu}`, which makes other keys"
        )


def check_cells(cells: "Sequence[Cell]", store: "Store", device: torch.device, note: Callable[[str], None]) -> Checked:
    """Raise where an engine has no device or computes something else; a component that is refused takes its own cells with it."""
    check_device(cells, device)
    refused = find_refused_cells(cells, store, note)
    passed = [cell for cell in cells if cell.key not in refused]
    return Checked(passed, refused, check_agreement(passed, store, device, note))
