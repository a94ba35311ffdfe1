"""Store finished cells, a file per stack. Each tensor has the cells on its leading axis (K, ...), and the header has a record per cell."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankfall.run.store.files import SUFFIX, Damaged, Vault, read_meta, read_sealed, write_sealed

if TYPE_CHECKING:
    from torch import Tensor

HEADERS = "headers"  # folder, in an object store, of stack files without their tensors, which a search for cells reads
PREFERENCE = {"done": 0, "diverged": 1}  # rank of an ending if two files hold a cell; the first file of a rank counts


@dataclass(frozen=True)
class CellRecord:
    """The file of a finished cell, and its record."""

    key: str
    group: str
    stack: Path
    index: int  # position on the leading axis
    record: dict[str, Any]  # status, reason, steps, seconds, final_loss, accuracy, versions, ...

    @property
    def status(self) -> str:
        """How the cell ended: done, diverged or failed."""
        return self.record["status"]


@dataclass(frozen=True)
class LoadedStack:
    """Cells of a stack file. `tensors` (K, ...) hold exactly these cells, in this order."""

    keys: list[str]
    tensors: dict[str, Tensor]
    records: list[dict[str, Any]]


class Stacks(Vault):
    """Files stacks/<group>/<name>.safetensors."""

    def save_stack(
        self,
        group: str,
        keys: Sequence[str],
        tensors: Mapping[str, Tensor],
        records: Sequence[Mapping[str, Any]],
    ) -> Path:
        """Store finished cells: tensors (K, ...), and for each cell a JSON-able record with a `status` of done, diverged or failed.

        The name of the file follows from keys and endings, so a failed run never replaces a successful one."""
        shared = {
            name: value
            for name, value in records[0].items()
            if all(name in other and other[name] == value for other in records[1:])
        }
        different = [{name: value for name, value in record.items() if name not in shared} for record in records]
        contents = {"keys": list(keys), "shared": shared, "records": different}
        endings = json.dumps([[key, record["status"]] for key, record in zip(keys, records)])
        path = self.root / "stacks" / group / f"{hashlib.sha256(endings.encode()).hexdigest()[:24]}{SUFFIX}"
        metadata = {"kind": "stack", "contents": json.dumps(contents)}
        write_sealed(path, tensors, metadata)
        if self.objects:
            self.keep(path)
            write_sealed(self.header(path), {}, metadata)
            self.keep(self.header(path))
        return path

    def records(self, groups: Iterable[str] | None = None) -> Iterator[CellRecord]:
        """Yield every record of these groups (None: of all), in the order of file names, with stale records and duplicates.

        A plan compares them to explain why a cell is stale."""
        folder = HEADERS if self.objects else "stacks"
        for group in self.folders(folder) if groups is None else sorted(set(groups)):
            for entry in self.files(f"{folder}/{group}"):
                contents = self.read_once(entry, lambda path: _parse(read_meta(path), {}))
                if contents is not None:
                    path = self.root / "stacks" / group / entry.name
                    for index, (key, record) in enumerate(zip(contents.keys, contents.records)):
                        yield CellRecord(key, group, path, index, record)

    def find_cells(self, keys: Iterable[str], groups: Iterable[str] | None = None) -> dict[str, CellRecord]:
        """Return key -> finished cell, of any status, for `keys` in these `groups` (None: in all). Only headers are read."""
        requested = set(keys)
        cells: dict[str, CellRecord] = {}
        for cell in self.records(groups):
            if cell.key in requested and (cell.key not in cells or rank(cell) < rank(cells[cell.key])):
                cells[cell.key] = cell
        return cells

    def load_cells(self, keys: Iterable[str], group: str | None = None) -> list[LoadedStack]:
        """Load finished cells with their tensors, checked, an entry per stack file, without missing and damaged cells.

        `join(loaded, keys)` makes a single stack of them."""
        groups = None if group is None else [group]
        return list(
            self.read_keys(
                keys,
                lambda missing: {key: cell.stack for key, cell in self.find_cells(missing, groups).items()},
                read_stack,
            )
        )

    def header(self, path: Path) -> Path:
        """Return the path of the header of a stack."""
        return self.root / HEADERS / path.parent.name / path.name

    def forget(self, path: Path) -> None:
        """Remove the header of a stack that is missing or damaged."""
        if self.objects:
            self.header(path).unlink(missing_ok=True)
            self.objects.remove(self.header(path))


def rank(cell: CellRecord) -> int:
    """Return the rank of a record. If two files hold a cell, the record with the lower rank counts."""
    return PREFERENCE.get(cell.status, 2)


def join(stacks: Sequence[LoadedStack], keys: Sequence[str]) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
    """Join cells from several files of one group into one stack in the order of `keys`. All of them must be loaded."""
    import torch

    index = {key: number for number, key in enumerate(key for stack in stacks for key in stack.keys)}
    order = torch.tensor([index[key] for key in keys])
    records = [record for stack in stacks for record in stack.records]
    tensors = {name: torch.cat([stack.tensors[name] for stack in stacks])[order] for name in stacks[0].tensors}
    return tensors, [records[index[key]] for key in keys]


def _parse(meta: Mapping[str, str], tensors: dict[str, Tensor]) -> LoadedStack:
    """Return the stack in a file's metadata, with these tensors."""
    try:
        raw = json.loads(meta["contents"])
        return LoadedStack(raw["keys"], tensors, [raw["shared"] | record for record in raw["records"]])
    except (ValueError, KeyError, TypeError):
        raise Damaged("its header is not that of a stack") from None


def read_stack(path: Path, keys: Collection[str] | None = None) -> LoadedStack:
    """Return the cells of a stack that have these keys (None: all). Raise `Damaged` or OSError."""
    tensors, meta = read_sealed(path)
    whole = _parse(meta, tensors)
    chosen = [index for index, key in enumerate(whole.keys) if keys is None or key in keys]
    if len(chosen) == len(whole.keys):
        return whole
    return LoadedStack(
        [whole.keys[index] for index in chosen],
        {name: tensor[chosen] for name, tensor in whole.tensors.items()},
        [whole.records[index] for index in chosen],
    )
