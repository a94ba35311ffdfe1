"""Removal of old entries from the user's cache folder: an entry that was not used for two months is deleted, for example one of an earlier
version. A use updates the entry's modification time, at most once a day.

Every entry can be rebuilt, so a reader that misses one rebuilds it. A file is unlinked directly: a process that has it open keeps reading.
A folder contains a file `lock`. Only the holder of that lock moves the folder away, and a process that waited for the lock of a removed
folder creates the folder again (`cache.py` of the engine).
"""

import fcntl
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from rankfall.disk import cache_home, engine_home

DAY = 86_400.0  # seconds
AGE = 60 * DAY  # without use
LOCK = "lock"


def use(path: Path) -> None:
    """Record that a cached file was used. Its time is updated at most once a day."""
    with suppress(OSError):
        if time.time() - path.stat().st_mtime > DAY:
            os.utime(path)


def tidy() -> list[Path]:
    """Remove entries that were not used for `AGE`, at most once a day, and return their paths."""
    home = cache_home()
    if home is None or not home.is_dir():
        return []
    mark = home / "tidied"
    with suppress(OSError):
        if time.time() - mark.stat().st_mtime < DAY:
            return []
    with suppress(OSError):
        mark.touch()
    entries = [path for folder in (home, engine_home()) if folder is not None for path in _entries(folder)]
    return [path for path in entries if _is_old(path) and _remove(path)]


def _entries(home: Path) -> list[Path]:
    """Return the paths of all entries, which lie two levels down: `kind/entry`."""
    with suppress(OSError):
        return [path for kind in home.iterdir() if kind.is_dir() and not kind.is_symlink() for path in kind.iterdir()]
    return []


def _is_old(path: Path) -> bool:
    """Return whether the newest file of an entry is older than `AGE`."""
    try:
        files = list(path.iterdir()) if path.is_dir() and not path.is_symlink() else []
        return time.time() - max(file.lstat().st_mtime for file in [path, *files]) > AGE
    except OSError:  # gone meanwhile
        return False


def _remove(path: Path) -> bool:
    """Remove an entry and return whether it is gone. A folder whose lock is held is in use and stays."""
    try:
        if path.is_symlink() or not path.is_dir():
            path.unlink()
            return True
        aside = path.with_name(f".gone-{os.getpid()}-{path.name}")
        with (path / LOCK).open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(path, aside)
        shutil.rmtree(aside)
        return True
    except OSError:  # another process uses it or removes it
        return False
