"""How a file appears: under its name at once and complete, or never; and what a failed system call means in plain words."""

import errno
import os
import secrets
import socket
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rankfall.errors import RankfallError

CAUSES = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "the folder or file may not be changed",
    errno.ENOTDIR: "a file is where a folder should be",
    errno.EISDIR: "a folder is where a file should be",
    errno.ELOOP: "symbolic links lead in a circle",
}


class StoreError(RankfallError):
    """The store cannot be read or written: disk full, read-only, ... The work in hand is not to blame."""


def cause(error: OSError) -> str:
    """Why a system call failed, in plain words."""
    return CAUSES.get(error.errno or 0, error.strerror or str(error))


def odd(path: Path | str) -> str | None:
    """What there is in place of a file, such as a pipe that would never end: in words; None for a file, and where there is nothing."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        return "a circle of symbolic links" if error.errno == errno.ELOOP else None
    if stat.S_ISREG(mode):
        return None
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def cannot(action: str, path: Path, error: OSError) -> StoreError:
    """A failed system call as one line: what could not be done, to which path, why, and that nothing else suffered."""
    return StoreError(
        f"cannot {action} {path}: {cause(error)}; finished results are untouched, mend this and run again"
    )


def not_ahead(folders: Iterable[Path]) -> None:
    """Give the present time to files that are dated later, by a machine whose clock is ahead: Snakemake fails a job whose input is
    newer than its output. Nothing else depends on these times.
    """
    now = time.time()
    for path in (path for folder in folders for path in folder.rglob("*")):
        with suppress(OSError):  # gone meanwhile, or somebody else's
            if path.stat().st_mtime > now:
                os.utime(path, (now, now))


@contextmanager
def atomic(path: Path) -> Iterator[BinaryIO]:
    """A file handle whose content appears under `path` at once and complete, or never. The temporary name tells who
    writes it.
    """
    temporary = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "xb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path)
        folder = os.open(path.parent, os.O_RDONLY)  # the rename itself must survive a power cut
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise cannot("write", path, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
