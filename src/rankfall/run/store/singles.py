"""Files for single results: a dataset under its key, and the checkpoint of a stack in training."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankfall.disk import cannot
from rankfall.errors import RankfallError
from rankfall.run.store.files import SUFFIX, Damaged, Header, Vault, check_kind, read_header, read_sealed, write_sealed

if TYPE_CHECKING:
    from torch import Tensor

    from rankfall.tasks._dataset import Dataset


LONGEST_NAME = 200  # file systems end at 255, and suffixes need room


class Datasets:
    """Files data/<key>.safetensors: the splits of a dataset, with its numbers in the header. Targets that are the inputs are stored
    once."""

    def __init__(self, vault: Vault) -> None:
        self.vault = vault

    def get(self, key: str, make: Callable[[], Dataset]) -> Dataset:
        """Return the dataset of this key. If it is not in the store, make and store it."""
        path = self.vault.root / "data" / (key + SUFFIX)
        found = self.vault.read(path, read_dataset)
        if found is not None:
            return found
        made = make()
        numbers = {
            field.name: getattr(made, field.name) for field in dataclasses.fields(made) if field.name != "splits"
        }
        tensors = {f"{name}.inputs": split.inputs for name, split in made.splits.items()}
        tensors |= {
            f"{n}.targets": split.targets for n, split in made.splits.items() if split.targets is not split.inputs
        }
        write_sealed(path, tensors, {"kind": "dataset", "key": key, "numbers": json.dumps(numbers)})
        return made

    def __contains__(self, key: str) -> bool:
        return (self.vault.root / "data" / (key + SUFFIX)).is_file()


class Checkpoints:
    """Files checkpoints/<stack_id>.safetensors: the state from which a stopped run resumes."""

    def __init__(self, vault: Vault) -> None:
        self.vault = vault

    def path(self, stack_id: str) -> Path:
        """Return the path of a stack's checkpoint."""
        return self.vault.root / "checkpoints" / (stack_id + SUFFIX)

    def save(self, stack_id: str, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> Path:
        """Replace the last checkpoint. A kill during writing leaves the last one intact."""
        path = self.path(stack_id)
        write_sealed(path, tensors, {"kind": "checkpoint", "stack": stack_id, "meta": json.dumps(dict(meta))})
        return path

    def load(self, stack_id: str, cells: Sequence[str]) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Return tensors and meta of the last checkpoint of these cells, or None. A damaged checkpoint is set aside."""
        return self.vault.read(self.path(stack_id), partial(_read_checkpoint_of, cells=cells))

    def drop(self, stack_id: str) -> None:
        """Delete a checkpoint, if it exists."""
        try:
            self.path(stack_id).unlink(missing_ok=True)
        except OSError as error:
            raise cannot("remove", self.path(stack_id), error) from error

    def cells(self) -> dict[Path, list[str] | None]:
        """Return every checkpoint with the `cells` in its meta, or None if it has none. Only headers are read."""
        found = {}
        for entry in self.vault.files("checkpoints"):
            meta = self.vault.read_once(entry, _read_meta)
            if meta is not None:
                found[Path(entry.path)] = meta.get("cells")
        return found


def read_dataset(path: Path) -> Dataset:
    """Return the data set in a file named by its key. Raise `Damaged` or OSError."""
    from rankfall.tasks._dataset import Dataset, Split

    tensors, header = read_sealed(path)
    check_kind(header, "dataset")
    if header.meta.get("key") != path.stem:
        raise Damaged(f"it holds data set {header.meta.get('key')}, but its name is another one's")
    inputs = {name.removesuffix(".inputs"): value for name, value in tensors.items() if name.endswith(".inputs")}
    try:
        splits = {name: Split(value, tensors.get(f"{name}.targets", value)) for name, value in inputs.items()}
        return Dataset(splits, **json.loads(header.meta["numbers"]))
    except (KeyError, ValueError, TypeError) as error:
        raise Damaged(f"it is not a dataset of this version ({error})") from None


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return tensors and meta of the stack in a file named by its id. Raise `Damaged` or OSError."""
    tensors, header = read_sealed(path)
    return tensors, _meta(header, path)


def _read_checkpoint_of(path: Path, cells: Sequence[str]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    tensors, meta = read_checkpoint(path)
    if meta.get("cells") != list(cells):
        raise Damaged("its cells are not those of the stack in training")
    return tensors, meta


def _read_meta(path: Path) -> dict[str, Any]:
    return _meta(read_header(path), path)


def _meta(header: Header, path: Path) -> dict[str, Any]:
    check_kind(header, "checkpoint")
    if header.meta.get("stack") != path.stem:
        raise Damaged(f"it holds the checkpoint of stack {header.meta.get('stack')}, but its name is another one's")
    try:
        meta: dict[str, Any] = json.loads(header.meta["meta"])
    except (KeyError, ValueError):
        raise Damaged("its header has no valid description of its stack") from None
    return meta


def check_name(name: str) -> str:
    """Return a name that becomes a folder or file name. Raise if it is not a plain name."""
    if not name or "/" in name or name.startswith(".") or len(name.encode()) > LONGEST_NAME:
        raise RankfallError(
            f"{name[:60]!r} cannot be a name in the store: it must not be empty, hold '/', begin with '.' or be longer than "
            f"{LONGEST_NAME} bytes"
        )
    return name
