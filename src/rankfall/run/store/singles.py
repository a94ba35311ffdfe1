"""Store single results in files: a dataset under its key, the checkpoint of a stack in training, and a passed trial of a component."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankfall.disk import cannot, write
from rankfall.run.store.files import SUFFIX, Damaged, Vault, read_meta, read_sealed, write_sealed

if TYPE_CHECKING:
    from torch import Tensor

    from rankfall.tasks._dataset import Dataset

TRIAL = ".json"  # suffix of a trial


class Datasets(Vault):
    """Files data/<key>.safetensors: the splits of a dataset, with its numbers in the header.

    Targets that are the same tensor as the inputs are not stored."""

    def dataset(self, key: str, make: Callable[[], Dataset]) -> Dataset:
        """Return the dataset of this key. If it is not in the store, make and store it."""
        path = self.root / "data" / (key + SUFFIX)
        stored = self.read(path, read_dataset)
        if stored is not None:
            return stored
        dataset = make()
        numbers = {
            field.name: getattr(dataset, field.name) for field in dataclasses.fields(dataset) if field.name != "splits"
        }
        tensors = {f"{name}.inputs": split.inputs for name, split in dataset.splits.items()}
        tensors |= {
            f"{n}.targets": split.targets for n, split in dataset.splits.items() if split.targets is not split.inputs
        }
        write_sealed(path, tensors, {"kind": "dataset", "key": key, "numbers": json.dumps(numbers)})
        self.keep(path)
        return dataset


class Checkpoints(Vault):
    """Files checkpoints/<stack_id>.safetensors: the state from which a stopped run resumes."""

    def checkpoint_file(self, stack_id: str) -> Path:
        """Return the path of a stack's checkpoint."""
        return self.root / "checkpoints" / (stack_id + SUFFIX)

    def save_checkpoint(self, stack_id: str, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> Path:
        """Save the state of a running stack and replace its last checkpoint, which stays intact if the process is killed while writing."""
        path = self.checkpoint_file(stack_id)
        write_sealed(path, tensors, {"kind": "checkpoint", "stack": stack_id, "meta": json.dumps(dict(meta))})
        self.keep(path)
        return path

    def load_checkpoint(self, stack_id: str, cells: Sequence[str]) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Return (tensors, meta) of the last checkpoint, or None.

        A checkpoint that is damaged, or whose meta names other `cells`, is set aside with a warning."""
        path = self.checkpoint_file(stack_id)
        if self.objects:
            self.objects.fetch(path)  # a copy here may be of an earlier attempt
        return self.read(path, partial(read_checkpoint, cells=cells))

    def drop_checkpoint(self, stack_id: str) -> None:
        """Delete a checkpoint, if it exists."""
        path = self.checkpoint_file(stack_id)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise cannot("remove", path, error) from error
        if self.objects:
            self.objects.remove(path)

    def find_checkpoints(self) -> dict[Path, list[str] | None]:
        """Return checkpoint -> `cells` in its meta, None if it has none. Only headers are read."""
        checkpoints = {}
        for entry in self.files("checkpoints"):
            meta = self.read_once(entry, lambda path: _describe_stack(read_meta(path)))
            if meta is not None:
                checkpoints[Path(entry.path)] = meta.get("cells")
        return checkpoints


class Trials(Vault):
    """Files trials/<key>.json: a component passed its trial. A lost file costs milliseconds, in which the component is tried again."""

    def has_passed(self, key: str) -> bool:
        """Return whether a trial was passed. A file appears whole or not at all, so its existence is enough."""
        path = self.root / "trials" / f"{key}{TRIAL}"
        return path.is_file() or (self.objects is not None and self.objects.fetch(path))

    def keep_trial(self, key: str, about: Mapping[str, Any]) -> None:
        """Store a passed trial. `about` is information for readers only."""
        path = self.root / "trials" / f"{key}{TRIAL}"
        write(path, json.dumps(dict(about)))
        self.keep(path)


def read_dataset(path: Path) -> Dataset:
    """Return the data set in a file. Raise `Damaged` or OSError."""
    from rankfall.tasks._dataset import Dataset, Split

    tensors, meta = read_sealed(path)
    inputs = {name.removesuffix(".inputs"): value for name, value in tensors.items() if name.endswith(".inputs")}
    try:
        splits = {name: Split(value, tensors.get(f"{name}.targets", value)) for name, value in inputs.items()}
        return Dataset(splits, **json.loads(meta["numbers"]))
    except (KeyError, ValueError, TypeError) as error:
        raise Damaged(f"it is not a dataset of this version ({error})") from None


def read_checkpoint(path: Path, cells: Sequence[str] | None = None) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return tensors and meta of a checkpoint. Raise `Damaged`, also if it is not of these cells (None: of any), or OSError."""
    tensors, sealed = read_sealed(path)
    meta = _describe_stack(sealed)
    if cells is not None and meta.get("cells") != list(cells):
        raise Damaged("its cells are not those of the stack in training")
    return tensors, meta


def _describe_stack(sealed: Mapping[str, str]) -> dict[str, Any]:
    """Return the meta of a checkpoint from the metadata of its file."""
    try:
        meta: dict[str, Any] = json.loads(sealed["meta"])
    except (KeyError, ValueError):
        raise Damaged("its header has no valid description of its stack") from None
    return meta
