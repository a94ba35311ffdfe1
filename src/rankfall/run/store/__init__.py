"""The store of all finished results, under keys that identify everything that they depend on.

Any number of processes on any number of machines may use a store at once without locks: names follow from keys, files appear whole by a
rename, and two processes that finish the same work write the same content. No file changes in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rankfall.disk import StoreError
from rankfall.run.store.announced import announce
from rankfall.run.store.rows import StoredRows
from rankfall.run.store.singles import Checkpoints, Datasets, Trials
from rankfall.run.store.stacks import CellRecord, LoadedStack, Stacks, join

__all__ = ["CellRecord", "LoadedStack", "Store", "StoreError", "join"]


class Store(Stacks, StoredRows, Datasets, Checkpoints, Trials):
    """The store in results/store, with data/, stacks/<group>/, checkpoints/, measures/<name>/, announced/, trials/ and damaged/."""

    def announce(self, cells: Iterable[Any], measures: Mapping[str, Iterable[str]] | None = None) -> Path | None:
        """Keep `rankfall gc` from removing these cells, their data, and rows of measures, for as long as this store is in use.

        `measures` maps components to keys without a cell."""
        return announce(self, self.root, cells, measures or {})
