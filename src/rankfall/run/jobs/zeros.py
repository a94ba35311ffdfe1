"""Whether the fast engines' kernels keep what cancels exactly in the cells of a job: looked at before any of them is trained."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch

from rankfall.disk import StoreError
from rankfall.errors import RankfallError, describe_error
from rankfall.run.guards.declared import Unproved
from rankfall.run.guards.watch import numerics
from rankfall.run.jobs.cells import dataset_of, shape_of, stack_data
from rankfall.run.plan.engines import PLAIN

if TYPE_CHECKING:
    from rankfall.run.plan.cell import Cell
    from rankfall.run.store import Store
    from rankfall.train.exact_zeros import Remainder


def check_zeros(cells: "Sequence[Cell]", store: "Store", note: Callable[[str], None]) -> None:
    """Raise if the kernels leave a remainder where a gradient is exactly 0, for the first cell of each group that they train. `note` is
    told where that could not be looked at."""
    firsts: dict[str, Cell] = {}
    for cell in cells:
        if cell.engine != PLAIN:
            firsts.setdefault(cell.group, cell)
    for cell in firsts.values():
        try:
            found = remainder_of(cell, store)
        except (StoreError, Unproved):
            raise
        except Exception as error:  # what a component raises is its cells' own failure, and their training will say so
            note(f"{cell.key}: not looked at whether exact zeros stay zeros: {describe_error(error)}")
            continue
        if found:
            raise RankfallError(
                f"{cell.task.name} / {cell.architecture.name}: the gradient of {found.parameter} is 0 by autograd and "
                f"{found.value:.1g} by the fast engine: data that are symmetric, such as tokens x and -x, and Adam would make whole "
                f"steps of this rounding. Say `compute: {{engine: plain}}`, or `SYMMETRIC = True` in the file of the task "
                f"{cell.task.task.name}"
            )


def remainder_of(cell: "Cell", store: "Store") -> "Remainder | None":
    from rankfall.train.exact_zeros import remainder  # needs numba, which not everybody has

    training = cell.training
    dataset = dataset_of(cell, store)
    with numerics(cell.code):
        data = stack_data([cell], [dataset], torch.device("cpu"))
        batch = next(data.epoch([cell.seed], 0, training.batch, training.shuffle))
        return remainder(cell.architecture, shape_of(cell, dataset), training, batch)
