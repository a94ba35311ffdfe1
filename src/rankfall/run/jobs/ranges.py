"""Check that data fit the networks of a stack. This covers every seed, whereas the trial of a task draws data for only one.

A network has as many symbol rows and outputs as its data require. All members of a stack have the sizes of the first member, and a larger
symbol would silently be looked up among another member's weights.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rankfall.errors import RankfallError
from rankfall.tasks._dataset import Dataset, Split
from rankfall.trial.data import find_outside

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


def check_split(split: Split, dataset: Dataset, what: str) -> None:
    """Raise if inputs or targets are out of range or not finite."""
    for name, values, least, size in (
        ("inputs", split.inputs, 0, "size_in"),
        ("targets", split.targets, -1, "size_out"),
    ):
        if fault := find_outside(values, least, getattr(dataset, size), size):
            raise RankfallError(f"{what} {name} {fault[0]}; {fault[1]}")
