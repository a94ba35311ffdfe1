"""Atomic writing, where a file appears complete or not at all, and plain descriptions of failed system calls."""

import errno
import os
import secrets
import socket
import stat
import sys
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
    errno.ENAMETOOLONG: "its name is too long",
}


def cache_home() -> Path | None:
    """Return this package's folder in the user's cache folder ($XDG_CACHE_HOME or ~/.cache); None if there is no home directory."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rankfall"
    except RuntimeError:
        return None


def engine_home() -> Path | None:
    """Return the folder of the engine (thousandfold) beside this package's folder, with its compiled code and programs."""
    home = cache_home()
    return None if home is None else home.with_name("thousandfold")


class StoreError(RankfallError):
    """The store cannot be read or written: disk full, read-only, ... The cells being computed are not the cause."""


def cause(error: OSError) -> str:
    """Return why a system call failed, in plain words."""
    return CAUSES.get(error.errno or 0, error.strerror or str(error))


def describe_non_file(path: Path | str) -> str | None:
    """Return in words what lies at a path instead of a regular file, such as a pipe; None for a regular file or a missing path."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        return "a circle of symbolic links" if error.errno == errno.ELOOP else None
    if stat.S_ISREG(mode):
        return None
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def cannot(action: str, path: Path, error: OSError) -> StoreError:
    """Return the error of a failed system call in one line: the action, the path, the cause, and that finished results are untouched."""
    return StoreError(
        f"cannot {action} {path}: {cause(error)}; finished results are untouched, mend this and run again"
    )


def silence() -> None:
    """Redirect stdout to /dev/null, so that Python does not complain at exit about output that it cannot flush."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def not_ahead(folders: Iterable[Path]) -> None:
    """Set modification times that lie in the future to the present. They occur where another machine's clock is ahead, and Snakemake fails
    a job whose input is newer than its output. Nothing else depends on these times.
    """
    now = time.time()
    for path in (path for folder in folders for path in folder.rglob("*")):
        with suppress(OSError):  # removed meanwhile, or owned by another user
            if path.stat().st_mtime > now:
                os.utime(path, (now, now))


@contextmanager
def atomic(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing whose content appears under `path` complete or never. The temporary name contains host and process."""
    temporary = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    kind = describe_non_file(path)
    if kind in ("a device", "a named pipe", "a socket"):  # the file would replace it
        raise StoreError(f"cannot write {path}: it is {kind}, not a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
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


def write(path: Path, content: bytes | str) -> None:
    """Write a file whole, as `atomic` does. A text is written in UTF-8."""
    with atomic(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
