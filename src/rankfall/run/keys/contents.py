"""Hash a file's bytes. A large file is read once; its hash is cached for as long as the file's state does not change.

The state is size, inode, and the times of the last change of content (`mtime`) and of content or attributes (`ctime`, which no program can
set back, so that `touch -r` and unpacked archives are noticed). A file that was changed within the last seconds may change again without a
new time stamp, so it is read each time until then.

Hashes of large files are stored for other processes in the user's cache folder ($XDG_CACHE_HOME or ~/.cache), since every job builds a plan
and needs the same weights' hashes. They are not in the results folder, because planning writes nothing there. If the cache cannot be
written, every process reads the files itself. Each large file has one small cache file, replaced atomically, so that any number of
processes may share the folder.
"""

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rankfall.caches import use
from rankfall.disk import StoreError, atomic, cache_home, describe_non_file
from rankfall.errors import RankfallError

LARGE = 2**24  # bytes: a smaller file is read in about 0.02 s, so a cache would save nothing
SETTLED = 2.0  # seconds: the coarsest clock of a file system


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex. Raise OSError, or `RankfallError` if it is not a file."""
    non_file = describe_non_file(path)
    if non_file is not None:
        raise RankfallError(f"{path}: is {non_file}, not a file")
    stat, home = path.stat(), cache_home()
    settled = time.time() - max(stat.st_mtime_ns, stat.st_ctime_ns) / 1e9 > SETTLED
    if stat.st_size < LARGE or not settled or home is None:
        return _read(path)
    entry = home / "contents" / hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:32]
    state = f"{stat.st_size} {stat.st_ino} {stat.st_mtime_ns} {stat.st_ctime_ns}"
    with suppress(OSError, ValueError):
        cached_state, digest = entry.read_text(encoding="ascii").rsplit(" ", 1)
        if cached_state == state and len(digest) == 64:
            use(entry)
            return digest
    digest = _read(path)
    with suppress(StoreError), atomic(entry) as file:
        file.write(f"{state} {digest}".encode())
    return digest


def _read(path: Path) -> str:
    """Return the SHA-256 of a file, read in full."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """Return (name within the folder, path) of every file, sorted, without hidden and compiled files.

    Links are followed, but each folder is visited once, since links may be circular."""
    return iter(sorted(_walk(folder)))


def _walk(folder: Path) -> Iterator[tuple[str, Path]]:
    seen = set()
    for parent, folders, names in os.walk(folder, followlinks=True, onerror=_fail):
        stat = os.stat(parent)
        if (stat.st_dev, stat.st_ino) in seen:
            folders.clear()
            continue
        seen.add((stat.st_dev, stat.st_ino))
        folders[:] = sorted(name for name in folders if name[0] != "." and name != "__pycache__")
        for name in names:
            path = Path(parent, name)
            if name[0] != "." and path.is_file():
                yield path.relative_to(folder).as_posix(), path


def _fail(error: OSError) -> None:
    """Raise the errors that `os.walk` ignores by default."""
    raise error
