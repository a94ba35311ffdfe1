"""Checks that data fit the networks of a stack. They cover every seed, whereas the trial of a task draws data for only one.

A network has as many symbol rows and outputs as its data require. All members of a stack have the sizes of the first member, and a larger
symbol would silently be looked up among another member's weights.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from rankfall.errors import RankfallError
from rankfall.tasks._dataset import Dataset, Split

if TYPE_CHECKING:
    from rankfall.run.plan.cell import Cell

SIZES = ("size_in", "size_out", "length", "special", "constant")


def check(cells: "Sequence[Cell]", datasets: Sequence[Dataset]) -> None:
    """Raise if one network cannot serve all of these data. The stack is then halved, and only cells with invalid data fail."""
    known: set[int] = set()
    for cell, dataset in zip(cells, datasets):
        for size in SIZES:
            own, others = getattr(dataset, size), getattr(datasets[0], size)
            if own != others:
                raise RankfallError(
                    f"task {cell.task.name}: {size} is {others} for seed {cells[0].seed} and {own} for seed {cell.seed}, so they share no "
                    "stack; a size that does not depend on the seed is faster"
                )
        if id(dataset) not in known:
            known.add(id(dataset))
            for name, split in dataset.splits.items():
                check_split(split, dataset, f"task {cell.task.name}, seed {cell.seed}: {name}")


def check_split(split: Split, of: Dataset, what: str) -> None:
    check_within(split.inputs, 0, of.size_in, f"{what} inputs", "size_in")
    if split.targets is not split.inputs:
        check_within(split.targets, -1, of.size_out, f"{what} targets", "size_out")


def check_within(values: Tensor, least: int, size: int, what: str, name: str) -> None:
    low, high = (float(end) for end in values.aminmax())
    if values.is_floating_point():
        if not (low - low == 0 and high - high == 0):  # NaN makes both ends NaN
            raise RankfallError(f"{what} are not all finite numbers")
    elif low < least or high >= size:
        raise RankfallError(
            f"{what} from {low:.0f} to {high:.0f} with {name} = {size}; they must lie in {least} .. {size - 1}"
        )
