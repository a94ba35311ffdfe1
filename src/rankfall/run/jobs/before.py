"""Checks before a job trains anything: engines run, components pass their trial, and the machine's numbers agree with autograd's."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from rankfall import components
from rankfall.design import components_of
from rankfall.disk import StoreError
from rankfall.errors import NoKernel, RankfallError, describe_error
from rankfall.run.guards.reads import Unproved
from rankfall.run.guards.unchanged import check_unchanged, numerics
from rankfall.run.jobs.cells import dataset_of, shape_of, stack_data
from rankfall.run.jobs.trials import find_refused_cells
from rankfall.run.plan.engines import MACHINE, MACHINE_GPU, MACHINES, check_installed
from rankfall.train.data import Data, steps_per_epoch
from rankfall.train.recipe import make_draw

if TYPE_CHECKING:
    from rankfall.run.plan.cell import Cell
    from rankfall.run.store import Store
    from rankfall.train.machine.engine import Machined
    from rankfall.train.objectives._base import Samples


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


def check_agreement(
    cells: "Sequence[Cell]", store: "Store", device: torch.device, note: Callable[[str], None]
) -> set[str]:
    """Return the groups that the machine cannot trace. Autograd trains them on any computer, since traceability depends on the code alone.
    Raise if the machine's numbers differ from autograd's for the first cell of a group. `note` reports cells that could not be checked."""
    firsts: dict[str, Cell] = {}
    for cell in cells:
        if cell.engine in MACHINES:
            firsts.setdefault(cell.group, cell)
    return {group for group, cell in firsts.items() if not is_traced(cell, store, device, note)}


def is_traced(cell: "Cell", store: "Store", device: torch.device, note: Callable[[str], None]) -> bool:
    """Return whether the machine can trace a cell's step."""
    from rankfall.train.machine.agreement import disagreement  # requires numba, an optional dependency
    from thousandfold.graph import Untraceable

    named = f"{cell.task.name} / {cell.architecture.name} / {cell.training.name}"
    try:
        dataset = dataset_of(cell, store)
        with numerics(cell.code):
            data = stack_data([cell, cell], [dataset, dataset], device)
            batches = ends_of_epoch(cell, data)
            for kind, component in [*components_of(cell.architecture), ("objective", cell.training.objective)]:
                components.load(kind, component.name)
            # Programs are kept under the planned digests, so an edited text that was imported here must not be traced.
            check_unchanged(cell.code)
            what = disagreement(
                cell.architecture,
                shape_of(cell, dataset),
                cell.training,
                batches,
                cell.code,
                lambda text: note(f"{named}: {text}"),
                machine_of(cell.engine),
            )
    except (StoreError, Unproved, NoKernel):
        raise
    except Untraceable as error:
        note(
            f"{named}: trained by autograd, since the machine cannot trace it: {describe_error(error)}; `TRACED = False` in the file of "
            "the component that does it lets the plan say so"
        )
        return False
    except Exception as error:  # a failing component is its cells' own failure, and their training reports it
        note(f"{cell.key}: could not check whether the machine agrees with autograd: {describe_error(error)}")
        return True
    if what:
        raise RankfallError(f"{named}: {what}")
    return True


def machine_of(engine: str) -> "type[Machined]":
    if engine == MACHINE_GPU:
        from rankfall.train.machine.gpu import MachinedOnGpu

        return MachinedOnGpu
    from rankfall.train.machine.engine import Machined

    return Machined


def ends_of_epoch(cell: "Cell", data: Data) -> "list[Samples]":
    """Return the first batch of the first epoch for two members. Add the last batch if it is smaller, or if the objective draws something
    for each batch."""
    size, shuffle, seeds = cell.training.batch, cell.training.shuffle, [cell.seed, cell.seed + 1]
    last = steps_per_epoch(data.samples, size) - 1
    found = [next(data.epoch(seeds, 0, size, shuffle, first)) for first in sorted({0, last})]
    draws = make_draw(cell.training)(found[0]).drawn is not None
    return found[:1] if found[0].inputs.shape == found[-1].inputs.shape and not draws else found
