"""Read and write files of the store atomically, with checksums, and set damaged files aside.

A sealed file is a safetensors file whose metadata has two checksums: `sha256` of the tensors, and `seal` of the metadata. A lookup reads
only the header, so that torch is imported only for tensors.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rankfall.disk import cannot, cause, write
from rankfall.run.objects import find_objects

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
Stamp = tuple[int, int, int]  # identifies an unchanged file: inode, time, size
SUFFIX = ".safetensors"


class Damaged(Exception):
    """The content of a file differs from what was written. The message describes the difference."""


def write_sealed(path: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, str]) -> None:
    """Write a safetensors file with both checksums, atomically."""
    from safetensors.torch import save

    whole: dict[str, Tensor] = {}
    storages = set[int]()
    for name, tensor in tensors.items():
        value = tensor.detach().cpu().contiguous()
        storage = value.untyped_storage().data_ptr()
        whole[name] = value.clone() if storage in storages else value  # safetensors refuses tensors that share memory
        storages.add(storage)
    sealed = {**meta, "sha256": _hash_tensors(whole)}
    write(path, save(whole, {**sealed, "seal": _hash_meta(sealed)}))


def read_meta(path: Path) -> dict[str, str]:
    """Return the metadata in the header, checked, without the tensors. Raise `Damaged` or OSError."""
    with _open(path, "numpy") as file:
        return _check_meta(file.metadata())


def read_sealed(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return tensors and metadata, checked by both checksums. Raise `Damaged` or OSError."""
    with _open(path, "pt") as file:
        meta = _check_meta(file.metadata())
        names = file.keys()
        tensors = {name: file.get_tensor(name).clone() for name in names}  # a copy, since mapped files may vanish
    if _hash_tensors(tensors) != meta["sha256"]:
        raise Damaged("its tensors do not match their checksum")
    return tensors, meta


@contextmanager
def _open(path: Path, framework: str) -> Iterator[Any]:
    """Open a safetensors file. Raise `Damaged` or OSError."""
    from safetensors import SafetensorError, safe_open

    with open(path, "rb"):  # safetensors reports any file that it may not open as missing
        pass
    try:
        with safe_open(path, framework=framework) as file:
            yield file
    except SafetensorError as error:
        raise Damaged(f"it is no whole safetensors file ({error})") from None


def _check_meta(meta: dict[str, str] | None) -> dict[str, str]:
    """Return the metadata without the seal; raise `Damaged` if the seal does not match."""
    sealed = dict(meta or {})
    if sealed.pop("seal", "") != _hash_meta(sealed):
        raise Damaged("its header does not match its checksum")
    return sealed


def _hash_meta(meta: Mapping[str, str]) -> str:
    """Return the digest of metadata."""
    return hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()


def _hash_tensors(tensors: Mapping[str, Tensor]) -> str:
    """Return the digest of names, types, shapes and bytes of contiguous tensors on the processor."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _stamp(stat: os.stat_result) -> Stamp:
    """Return the stamp that changes with a file's content."""
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


class Vault:
    """The root folder of a store. It lists and reads files, handles damage, and caches read values by name and stamp.

    With `only_reads` it leaves damaged files in place: the folder may belong to another version of Rankfall, which can read them. If the
    results are in an object store, the folder is a cache: a search fetches files, and a finished file is put."""

    def __init__(self, root: Path | str, only_reads: bool = False) -> None:
        self.root = Path(root)
        self.only_reads = only_reads
        self.objects = find_objects(self.root.parent)
        self._memory: dict[Path, tuple[Stamp, Any]] = {}
        self._unreadable: dict[Path, Stamp] = {}

    def files(self, folder: str, suffix: str = SUFFIX) -> list[os.DirEntry[str]]:
        """Return the finished files of a folder by name. An absent folder has none. Hidden names are temporary files.

        Files that could not be read and did not change since are omitted, in case they could not be set aside."""
        entries = [entry for entry in self._scan(folder) if entry.name.endswith(suffix) and entry.name[0] != "."]
        return sorted((entry for entry in entries if not self._is_unreadable(entry)), key=lambda entry: entry.name)

    def _is_unreadable(self, entry: os.DirEntry[str]) -> bool:
        """Return whether a file could not be read and did not change since."""
        seen = self._unreadable.get(Path(entry.path))
        try:
            return seen is not None and seen == _stamp(entry.stat())
        except FileNotFoundError:
            return False

    def now(self) -> float:
        """Return the time by the clock of the file system or the object store, since this machine's may be wrong."""
        mark = self.root / f".clock.{socket.gethostname()}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
        if self.objects:
            return self.objects.now(mark)
        write(mark, b"")
        now = mark.stat().st_mtime
        mark.unlink()
        return now

    def list_all(self, folder: str) -> dict[Path, tuple[int, float]]:
        """Return path -> (size, time of writing) of everything in a folder of the results, without fetching it."""
        results = self.root.parent
        if self.objects:
            return {results / name: entry for name, entry in self.objects.list_all(folder).items()}
        entries = {}
        for parent, _, names in os.walk(results / folder):  # follows no links, which may be circular
            for path in (Path(parent, name) for name in names):
                with suppress(FileNotFoundError):
                    stat = path.lstat()
                    entries[path] = stat.st_size, stat.st_mtime
        return entries

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders inside a folder."""
        return sorted(entry.name for entry in self._scan(folder) if Path(entry.path).is_dir())

    def _scan(self, folder: str) -> list[os.DirEntry[str]]:
        """Return the entries of a folder, after fetching its new objects."""
        if self.objects:
            self.objects.fetch_new(f"{self.root.name}/{folder}")
        try:
            with os.scandir(self.root / folder) as entries:
                return list(entries)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise cannot("read", self.root / folder, error) from error

    def read_once(self, entry: os.DirEntry[str], read: Callable[[Path], T]) -> T | None:
        """Return `read` of a listed file, which is called once while the file does not change."""
        path = Path(entry.path)
        try:
            stat = entry.stat()
        except FileNotFoundError:
            return None
        stamp = _stamp(stat)
        known = self._memory.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        value = self.read(path, read)
        if value is not None:
            self._memory[path] = (stamp, value)
        return value

    def read(self, path: Path, read: Callable[[Path], T], patience: float = 0.2) -> T | None:
        """Return `read(path)`, or None if the file is missing, vanishes between listing and opening, or is damaged.

        A damaged file is set aside."""
        if self.objects and not path.exists():
            self.objects.fetch(path)
        for last in (False, True):
            try:
                before = os.stat(path)
                return read(path)
            except Damaged as damage:
                if last or self.only_reads:
                    self._unreadable[path] = _stamp(before)
                    self.set_aside(path, str(damage), before)
                    return None
                time.sleep(patience)  # read again before the file counts as damaged: shared file systems may be slow
                if self.objects:
                    self.objects.fetch(path)
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.ESTALE):
                    return None
                raise cannot("read", path, error) from error
        return None

    def read_keys(
        self, keys: Iterable[str], locate: Callable[[set[str]], Mapping[str, Path]], read: Callable[..., T]
    ) -> Iterator[T]:
        """Yield `read(path, keys)` for each file in which `locate` finds keys.

        The keys of a missing or damaged file are located again, since another file may hold them."""
        missing = set(keys)
        while missing:
            files: dict[Path, set[str]] = {}
            for key, path in locate(missing).items():
                if key in missing:
                    files.setdefault(path, set()).add(key)
            missing = set()
            for path, held in sorted(files.items()):
                content = self.read(path, partial(read, keys=held))
                if content is None:
                    missing |= held
                    self.forget(path)
                else:
                    yield content

    def forget(self, path: Path) -> None:
        """Remove what led to a file that is missing or damaged."""

    def keep(self, path: Path) -> None:
        """Put a finished file into the object store, if there is one."""
        if self.objects:
            self.objects.put(path)

    def set_aside(self, path: Path, reason: str, seen: os.stat_result) -> None:
        """Move a damaged file to damaged/, unless another process replaced it meanwhile."""
        if self.only_reads:
            return
        name = "__".join(path.relative_to(self.root).parts)
        target = self.root / "damaged" / f"{time.strftime('%Y%m%dT%H%M%S')}-{secrets.token_hex(4)}-{name}"
        try:
            if _stamp(os.stat(path)) != _stamp(seen):
                return
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, target)
            if self.objects:
                self.objects.put(target)
                self.objects.remove(path)
            end = f"moved to {target}"
        except FileNotFoundError:
            return  # another process was first
        except OSError as error:
            end = f"could not be moved to damaged/ ({cause(error)})"
        logging.getLogger("rankfall.run.store").warning(
            "%s is damaged: %s; %s and treated as missing", path, reason, end
        )
