"""Files of the store: written atomically, protected by checksums, and set aside if they are damaged.

A sealed file is an ordinary safetensors file (any safetensors reader opens it) whose header also has two checksums: `sha256` over the
tensor bytes, and `seal` over everything else in the header. The header alone answers a lookup, so this module parses it itself and imports
torch only to create tensors.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from rankfall.disk import atomic, cannot, cause
from rankfall.errors import RankfallError

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
Stamp = tuple[int, int, int]  # identifies an unchanged file: inode, time, size
SUFFIX = ".safetensors"
LONGEST_NAME = 200  # file systems end at 255, and suffixes need room
LONGEST_HEADER = 100_000_000  # the limit of the safetensors library
# safetensors' name -> torch's. Sizes are powers of two and the largest are written first, so every tensor is aligned.
DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "BOOL": "bool",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8",
}  # fmt: skip


class Damaged(Exception):
    """The file is not what was written. The message says how it differs."""


@dataclass(frozen=True)
class Header:
    """The header of a sealed file: text metadata, and name -> {dtype, shape, data_offsets} of its tensors."""

    meta: dict[str, str]
    tensors: dict[str, Any]
    start: int  # offset of the tensor bytes


def write_sealed(path: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, str]) -> None:
    """Write a safetensors file with both checksums, atomically."""
    import torch

    names = {getattr(torch, value): name for name, value in DTYPES.items() if hasattr(torch, value)}
    table: dict[str, Any] = {}
    chunks = []
    digest = hashlib.sha256()
    offset = 0
    for name in sorted(tensors, key=lambda name: (-tensors[name].element_size(), name)):
        tensor = tensors[name].detach().cpu().contiguous()
        if tensor.dtype not in names:
            raise RankfallError(f"{path.name}: tensor {name} has dtype {tensor.dtype}, which the store cannot hold")
        chunk = tensor.reshape(-1).view(torch.uint8).numpy().data
        digest.update(chunk)
        chunks.append(chunk)
        table[name] = {
            "dtype": names[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + chunk.nbytes],
        }
        offset += chunk.nbytes
    sealed = dict(meta) | {"sha256": digest.hexdigest()}
    sealed["seal"] = _seal(table, sealed)
    header = json.dumps({"__metadata__": sealed} | table, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    with atomic(path) as handle:
        handle.write(len(header).to_bytes(8, "little") + header)
        for chunk in chunks:
            handle.write(chunk)


def read_header(path: Path) -> Header:
    """Read and check only the header. Raise `Damaged` or OSError."""
    with open(path, "rb") as handle:
        return _parse_header(handle)


def read_sealed(path: Path) -> tuple[dict[str, Tensor], Header]:
    """Read the whole file, compare both checksums, and create the tensors. Raise `Damaged` or OSError."""
    with open(path, "rb") as handle:
        header = _parse_header(handle)
        data = bytearray(os.fstat(handle.fileno()).st_size - header.start)
        if handle.readinto(data) != len(data):
            raise Damaged("it ends before its tensors do")
    if hashlib.sha256(data).hexdigest() != header.meta.get("sha256"):
        raise Damaged("its tensors do not match their checksum")
    import torch

    tensors = {}
    for name, entry in header.tensors.items():
        dtype = getattr(torch, DTYPES[entry["dtype"]])
        begin, end = entry["data_offsets"]
        count = (end - begin) // dtype.itemsize
        if count == 0:
            tensors[name] = torch.zeros(entry["shape"], dtype=dtype)  # without elements
        else:
            tensors[name] = torch.frombuffer(data, dtype=dtype, count=count, offset=begin).reshape(entry["shape"])
    return tensors, header


def _stamp(stat: os.stat_result) -> Stamp:
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def _parse_header(handle: BinaryIO) -> Header:
    size = os.fstat(handle.fileno()).st_size
    if size == 0:
        raise Damaged("it is empty")
    length = int.from_bytes(handle.read(8), "little")
    if size < 8 or length > min(size - 8, LONGEST_HEADER):
        raise Damaged("it ends before its header does")
    try:
        content = json.loads(handle.read(length))
        meta = content.pop("__metadata__")
        sealed = meta["seal"] == _seal(content, meta)
        sealed = sealed and all(isinstance(value, str) for value in meta.values())
    except (ValueError, LookupError, TypeError, AttributeError):
        raise Damaged("its header is not one that the store writes") from None
    if not sealed:
        raise Damaged("its header does not match its checksum")
    ends = max((entry["data_offsets"][1] for entry in content.values()), default=0)
    if size != 8 + length + ends:
        raise Damaged(f"it has {size} bytes where its header says {8 + length + ends}")
    return Header(meta, content, 8 + length)


def _seal(table: dict[str, Any], meta: Mapping[str, str]) -> str:
    text = json.dumps([table, {key: value for key, value in meta.items() if key != "seal"}], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Vault:
    """The root folder of a store. It lists files, reads them, handles damage, and remembers by name and stamp what it read. With
    `only_reads` it leaves damaged files where they are: the folder may belong to another version of Rankfall, which can read them."""

    def __init__(self, root: Path | str, only_reads: bool = False) -> None:
        self.root = Path(root)
        self.only_reads = only_reads
        self._memory: dict[Path, tuple[Stamp, Any]] = {}
        self._unreadable: dict[Path, Stamp] = {}

    def files(self, folder: str, suffix: str = SUFFIX) -> list[os.DirEntry[str]]:
        """Return the finished files of a folder by name. An absent folder has none. Hidden names are temporary files. Files
        that could not be read and have not changed since are left out, in case they could not be set aside."""
        try:
            with os.scandir(self.root / folder) as entries:
                found = [entry for entry in entries if entry.name.endswith(suffix) and not entry.name.startswith(".")]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise cannot("read", self.root / folder, error) from error
        return sorted((entry for entry in found if not self._known_unreadable(entry)), key=lambda entry: entry.name)

    def _known_unreadable(self, entry: os.DirEntry[str]) -> bool:
        seen = self._unreadable.get(Path(entry.path))
        try:
            return seen is not None and seen == _stamp(entry.stat())
        except FileNotFoundError:
            return False

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders inside a folder."""
        try:
            with os.scandir(self.root / folder) as entries:
                return sorted(entry.name for entry in entries if Path(entry.path).is_dir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise cannot("read", self.root / folder, error) from error

    def read_once(self, entry: os.DirEntry[str], read: Callable[[Path], T]) -> T | None:
        """Return `read` of a listed file, called once as long as the file does not change."""
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
        """Return `read(path)`, or None if the file is missing, vanishes between listing and opening, or is damaged (then it is set
        aside)."""
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
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.ESTALE):
                    return None
                raise cannot("read", path, error) from error
        return None

    def set_aside(self, path: Path, reason: str, seen: os.stat_result) -> None:
        """Move a damaged file to damaged/, unless another process has replaced it meanwhile."""
        if self.only_reads:
            return
        log = logging.getLogger("rankfall.run.store")
        name = "__".join(path.relative_to(self.root).parts)
        target = self.root / "damaged" / f"{time.strftime('%Y%m%dT%H%M%S')}-{secrets.token_hex(4)}-{name}"
        try:
            if _stamp(os.stat(path)) != _stamp(seen):
                return
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, target)
        except FileNotFoundError:
            return  # another process was first
        except OSError as error:
            log.warning(
                "%s is damaged: %s; it could not be moved to damaged/ (%s) and is treated as missing",
                path,
                reason,
                cause(error),
            )
            return
        log.warning("%s is damaged: %s; moved to %s and treated as missing", path, reason, target)


def check_name(name: str) -> str:
    """Return a name that becomes a folder or file name. Raise if it is not a plain name."""
    if not name or "/" in name or name.startswith(".") or len(name.encode()) > LONGEST_NAME:
        raise RankfallError(
            f"{name[:60]!r} cannot be a name in the store: it must not be empty, hold '/', begin with '.' or be longer than "
            f"{LONGEST_NAME} bytes"
        )
    return name
