"""What is kept in the user's cache folder, and for how long: whatever nobody has used for two months goes, above all what earlier versions
left. What is used says so by its time, once a day.

Everything there can be made again, so a reader that finds nothing makes it. A file is removed as it is: who has it open reads on. A folder
has a file `lock`; it is moved away only by who holds that lock, and who has waited for the lock of a folder that is gone makes it again
(`train/machine/cache.py`).
"""

import fcntl
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from rankfall.disk import cache_home

DAY = 86_400.0
AGE = 60 * DAY  # without use
LOCK = "lock"
GONE = ".gone-"  # a folder that is being removed


def use(path: Path) -> None:
    """Note that a cached file was used. The time need not be exact, so this seldom writes."""
    with suppress(OSError):
        if time.time() - path.stat().st_mtime > DAY:
            os.utime(path)


def tidy() -> list[Path]:
    """Remove what has not been used for long; at most once a day. Returns what was removed."""
    home = cache_home()
    if home is None or not home.is_dir():
        return []
    mark = home / "tidied"
    with suppress(OSError):
        if time.time() - mark.stat().st_mtime < DAY:
            return []
    with suppress(OSError):
        mark.touch()
    return [path for path in _entries(home) if _is_old(path) and _remove(path)]


def _entries(home: Path) -> list[Path]:
    """Everything that is kept, two levels down: kind and entry."""
    with suppress(OSError):
        return [path for kind in home.iterdir() if kind.is_dir() and not kind.is_symlink() for path in kind.iterdir()]
    return []


def _is_old(path: Path) -> bool:
    """By the latest time of the entry's files."""
    try:
        files = list(path.iterdir()) if path.is_dir() and not path.is_symlink() else []
        return time.time() - max(one.lstat().st_mtime for one in [path, *files]) > AGE
    except OSError:  # gone meanwhile
        return False


def _remove(path: Path) -> bool:
    try:
        if path.is_symlink() or not path.is_dir():
            path.unlink()
            return True
        if path.name.startswith(GONE):  # of a process that was killed while it removed
            shutil.rmtree(path)
            return True
        aside = path.with_name(f"{GONE}{os.getpid()}-{path.name}")
        with (path / LOCK).open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(path, aside)
        shutil.rmtree(aside)
        return True
    except OSError:  # somebody uses it, or removes it too
        return False
