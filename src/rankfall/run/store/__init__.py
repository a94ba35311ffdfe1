"""The store of all finished results, under keys that identify what they were computed from.

Any number of processes on any number of machines may use one store at once without locks: names follow from keys, files appear whole by a
rename, and two processes that finish the same work write the same content. Files are never changed in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankfall.disk import StoreError
from rankfall.run.store.announced import announce
from rankfall.run.store.files import Vault
from rankfall.run.store.rows import Rows
from rankfall.run.store.singles import Checkpoints, Datasets, check_name
from rankfall.run.store.stacks import CellRecord, LoadedStack, Stacks, join

if TYPE_CHECKING:
    from torch import Tensor

    from rankfall.tasks._dataset import Dataset

__all__ = ["CellRecord", "LoadedStack", "Store", "StoreError", "join"]


class Store:
    """The store in results/store, with data/, stacks/<group>/, checkpoints/, measures/<name>/, announced/, trials/ and damaged/."""

    def __init__(self, root: Path | str, only_reads: bool = False) -> None:
        self.root = Path(root)
        self.vault = Vault(self.root, only_reads)
        self.stacks = Stacks(self.vault)
        self.datasets = Datasets(self.vault)
        self.rows = Rows(self.vault)
        self.checkpoints = Checkpoints(self.vault)

    def announce(self, cells: Iterable[Any], measures: Mapping[str, Iterable[str]] | None = None) -> Path | None:
        """Keep `rankfall gc` from removing these cells, their data, and rows of measures (component -> keys without a cell), for as long as
        this store is in use."""
        return announce(self, self.root, cells, measures or {})

    def save_stack(
        self,
        group: str,
        keys: Sequence[str],
        tensors: Mapping[str, Tensor],
        records: Sequence[Mapping[str, Any]],
        meta: Mapping[str, Any] | None = None,
    ) -> Path:
        """Store finished cells: tensors (K, ...), and for each cell a JSON-able record with at least a `status` of done, diverged or
        failed."""
        return self.stacks.save(check_name(group), keys, tensors, records, meta or {})

    def find_cells(self, keys: Iterable[str], groups: Iterable[str] | None = None) -> dict[str, CellRecord]:
        """Return the finished cells among `keys`, of any status, in these `groups` (None: in all). Only headers are read."""
        return self.stacks.find(keys, groups)

    def records(self, groups: Iterable[str] | None = None) -> Iterator[CellRecord]:
        """Yield every record of these groups, including stale ones. A plan compares them to explain why a cell is stale."""
        return self.stacks.records(groups)

    def load_cells(self, keys: Iterable[str], group: str | None = None) -> list[LoadedStack]:
        """Load finished cells with their tensors, checked, one entry per stack file. `join(loaded, keys)` makes one stack of them."""
        return self.stacks.load(keys, None if group is None else [group])

    def dataset(self, key: str, make: Callable[[], Dataset]) -> Dataset:
        """Return the dataset of this key. If it is not in the store, make and store it."""
        return self.datasets.get(check_name(key), make)

    def save_rows(self, name: str, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> Path:
        """Store measured rows by measure key: the measure's own columns, no labels. A key without rows counts as measured too."""
        return self.rows.save(check_name(name), rows)

    def find_rows(self, name: str, keys: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
        """Return the stored rows of these keys. Keys that are absent from the result have to be measured."""
        return self.rows.find(name, keys)

    def save_checkpoint(self, stack_id: str, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> Path:
        """Save the state of a running stack and replace its last checkpoint."""
        return self.checkpoints.save(check_name(stack_id), tensors, meta)

    def load_checkpoint(self, stack_id: str, cells: Sequence[str]) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Return (tensors, meta) of the last checkpoint, or None. A checkpoint that is damaged, or whose meta names other `cells`, is set
        aside with a warning."""
        return self.checkpoints.load(stack_id, cells)

    def drop_checkpoint(self, stack_id: str) -> None:
        """Delete a checkpoint, if it exists."""
        self.checkpoints.drop(stack_id)
