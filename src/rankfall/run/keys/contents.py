"""The hash of a file's bytes. A large file is read once, and its hash is remembered as long as the file's state does not change.

The state is size, inode, and the times of the last change of content (`mtime`) and of content or attributes (`ctime`, which no program can
set back, so that `touch -r` and unpacked archives are noticed). A file that was changed within the last seconds may change again without a
new time stamp, so it is read each time until then.

Hashes of large files are stored for other processes in the user's cache folder ($XDG_CACHE_HOME or ~/.cache), since every job builds a plan
and needs the same weights' hashes. They are not in the results folder, because planning writes nothing there. If the cache cannot be
written, every process reads the files itself. Each large file has one small cache file, replaced atomically, so that any number of
processes may share the folder.
"""

import functools
import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rankfall.caches import use
from rankfall.disk import StoreError, atomic, cache_home, describe_non_file
from rankfall.errors import RankfallError

LARGE = 2**24  # bytes; fewer are read within a hundredth of a second or two
SETTLED = 2.0  # seconds: the coarsest clock of a file system
ATTEMPTS = 3
ENTRY = re.compile(r"(\d+ \d+ -?\d+ -?\d+) ([0-9a-f]{64})\n")

State = tuple[int, int, int, int]


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex. Raise OSError, or `RankfallError` if it is not a file or keeps changing."""
    what = describe_non_file(path)
    if what is not None:
        raise RankfallError(f"{path}: is {what}, not a file")
    for _ in range(ATTEMPTS):
        state = _state(path)
        settled = time.time() - max(state[2:]) / 1e9 > SETTLED
        found = _cached_hash(path.absolute(), state) if settled else _read(path)
        if _state(path) == state:
            return found
    raise RankfallError(f"{path}: changes while it is read")


def files_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """Return (name within the folder, path) of every file, sorted, without hidden and compiled ones. Links are followed, but each folder is
    visited once, since links may be circular."""
    return iter(sorted(_walk(folder)))


def _walk(folder: Path) -> Iterator[tuple[str, Path]]:
    seen = set()
    for place, folders, names in os.walk(folder, followlinks=True, onerror=_fail):
        stat = os.stat(place)
        if (stat.st_dev, stat.st_ino) in seen:
            folders.clear()
            continue
        seen.add((stat.st_dev, stat.st_ino))
        folders[:] = sorted(name for name in folders if name[0] != "." and name != "__pycache__")
        for name in names:
            path = Path(place, name)
            if name[0] != "." and path.is_file():
                yield path.relative_to(folder).as_posix(), path


def _fail(error: OSError) -> None:
    raise error


def _state(path: Path) -> State:
    stat = os.stat(path)
    return stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns


@functools.lru_cache(maxsize=4096)
def _cached_hash(path: Path, state: State) -> str:
    if state[0] < LARGE:
        return _read(path)
    entry = _entry(path)
    written = " ".join(map(str, state))
    known = _read_entry(entry) if entry else None
    if entry is not None and known is not None and known[0] == written:
        use(entry)
        return known[1]
    found = _read(path)
    if entry is not None and _state(path) == state:
        with suppress(StoreError), atomic(entry) as file:
            file.write(f"{written} {found}\n".encode())
    return found


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _entry(path: Path) -> Path | None:
    """Return the cache file for the hash of this file, or None if there is no home folder."""
    home = cache_home()
    name = hashlib.sha256(str(path).encode(errors="surrogateescape")).hexdigest()[:32]
    return home / "contents" / name if home else None


def _read_entry(entry: Path) -> tuple[str, str] | None:
    """Return state and hash from the cache, or None if there is no valid entry."""
    try:
        found = ENTRY.fullmatch(entry.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return (found[1], found[2]) if found else None
