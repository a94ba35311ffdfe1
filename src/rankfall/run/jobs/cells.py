"""Load data, shapes and stored tensors of cells, for training and measuring jobs."""

from collections.abc import Callable, Sequence

import torch

from rankfall import components
from rankfall.disk import StoreError
from rankfall.errors import RankfallError
from rankfall.nets.network import Shape
from rankfall.run.guards import check_job
from rankfall.run.plan.cell import Cell
from rankfall.run.store import CellRecord, LoadedStack, Store
from rankfall.tasks._dataset import Dataset, Split, draw, draw_fresh
from rankfall.train.data import Data
from rankfall.trial.data import find_outside

SEEN = 0.1  # largest share of test samples that may be training samples
SIZES = ("size_in", "size_out", "length", "special", "constant")  # sizes of a dataset that all members of a stack share
Datasets = dict[str, Dataset]  # data key -> data
ATTEMPTS = 4  # how often a job looks for cells in the store and trains those that vanished


def datasets_of(cells: Sequence[Cell], store: Store, known: Datasets | None = None) -> list[Dataset]:
    """Return the data of each cell. Cells with the same data key share one object."""
    datasets = dict(known or {})
    return [dataset_of(cell, store, datasets) for cell in cells]


def dataset_of(cell: Cell, store: Store, known: Datasets | None = None) -> Dataset:
    """Return the data of a cell, from `known`, from the store, or drawn and stored."""
    known = {} if known is None else known

    def make() -> Dataset:
        dataset = draw(components.bound("task", cell.task.task), cell.data_seed)
        check_job()
        return dataset

    if cell.data_key not in known:
        known[cell.data_key] = store.dataset(cell.data_key, make)
    if cell.training.epochs:
        check_overlap(cell, known[cell.data_key])
    return known[cell.data_key]


def check_overlap(cell: Cell, dataset: Dataset) -> None:
    """Raise if many test samples are training samples, unless the task states the reason in its fact OVERLAP."""
    if "OVERLAP" in components.facts_of("task", cell.task.task.name):
        return
    seen, total = dataset.count_seen(), len(dataset.test.inputs)
    if seen > SEEN * total:
        raise RankfallError(
            f"task {cell.task.name}, seed {cell.data_seed}: {seen} of {total} test samples are training samples, more than a tenth\n"
            "  fix: give the task more possible samples (raise length or symbols) or lower train; if it is meant, say OVERLAP = 'why'"
        )


def stack_data(cells: Sequence[Cell], datasets: Sequence[Dataset], device: torch.device) -> Data:
    """Return the data of a stack as tensors on the device."""
    check_ranges(cells, datasets)
    task, like = components.bound("task", cells[0].task.task), datasets[0]

    def endless(seed: int, step: int, samples: int) -> Split:
        batch = draw_fresh(task, seed, step, samples)
        check_split(batch, like, f"task {cells[0].task.name}, seed {seed}: batch {step},")
        return batch

    return Data.from_datasets(
        datasets, getattr(torch, cells[0].training.dtype), device, endless if getattr(task, "batch", None) else None
    )


def check_ranges(cells: Sequence[Cell], datasets: Sequence[Dataset]) -> None:
    """Raise if the data of a stack need networks of different sizes. The job then halves the stack, and only cells with invalid data fail.

    A network has as many symbol rows and outputs as its data require. All members of a stack have the sizes of the first member, and a
    larger symbol would silently read another member's weights. The trial of a task cannot find this, since it draws data for a single seed.
    """
    checked: set[int] = set()
    for cell, dataset in zip(cells, datasets):
        for size in SIZES:
            value, first = getattr(dataset, size), getattr(datasets[0], size)
            if value != first:
                raise RankfallError(
                    f"task {cell.task.name}: {size} is {first} for seed {cells[0].seed} and {value} for seed {cell.seed}, so they share no "
                    "stack; a size that does not depend on the seed is faster"
                )
        if id(dataset) not in checked:
            checked.add(id(dataset))
            for name, split in dataset.splits.items():
                check_split(split, dataset, f"task {cell.task.name}, seed {cell.seed}: {name}")


def check_split(split: Split, dataset: Dataset, source: str) -> None:
    """Raise if a split has no samples, or if its inputs or targets are out of range or not finite. `source` begins the message."""
    if not len(split.inputs):
        raise RankfallError(f"{source} has no samples; draw at least one for each split")
    for name, values, least, size in (
        ("inputs", split.inputs, 0, "size_in"),
        ("targets", split.targets, -1, "size_out"),
    ):
        if fault := find_outside(values, least, getattr(dataset, size), size):
            raise RankfallError(f"{source} {name} {fault[0]}; {fault[1]}")


def shape_of(cell: Cell, dataset: Dataset) -> Shape:
    """Return the kinds and sizes of inputs and targets, which a network is built for."""
    facts = components.facts_of("task", cell.task.task.name)
    return Shape(facts["INPUTS"], facts["TARGETS"], dataset.length, dataset.size_in, dataset.size_out)


def find_records(cells: Sequence[Cell], store: Store, train: Callable[[Sequence[Cell]], None]) -> dict[str, CellRecord]:
    """Return the store's record of each cell. Cells that vanished, for example by cleaning, are passed to `train` again."""
    keys, groups = [cell.key for cell in cells], {cell.group for cell in cells}
    for _ in range(ATTEMPTS):
        records = store.find_cells(keys, groups)
        missing = [cell for cell in cells if cell.key not in records]
        if not missing:
            return records
        train(missing)
    raise _vanishing(missing, store)


def load_stacks(cells: Sequence[Cell], store: Store, train: Callable[[Sequence[Cell]], None]) -> list[LoadedStack]:
    """Load cells of one group with their tensors.

    Damage shows only when a file is read in full. The store then sets the file aside, and its cells are passed to `train` again."""
    keys, group = [cell.key for cell in cells], cells[0].group
    for _ in range(ATTEMPTS):
        stacks = store.load_cells(keys, group)
        loaded = {key for stack in stacks for key in stack.keys}
        missing = [cell for cell in cells if cell.key not in loaded]
        if not missing:
            return stacks
        train(missing)
    raise _vanishing(missing, store)


def _vanishing(cells: Sequence[Cell], store: Store) -> StoreError:
    return StoreError(
        f"{len(cells)} cells ({cells[0].key}, ...) vanished from {store.root} again and again after they were trained: something "
        "removes or damages its files; mend that and run again"
    )
