"""Machine code of the kernels, compiled once a machine and kept for all processes in the user's cache folder.

numba compares a source's time and size with those that it noted, which an edit may leave as they were. So the folder is named by the text
of all modules that are compiled, as it was imported here, and by what compiles it; processes that need the same wait for the first.
"""

import fcntl
import hashlib
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba

from rankfall.train.fused.compiled import SETTINGS
from rankfall.train.fused.tile import COLUMNS, LANES, ROWS

PACKAGE = __name__.rpartition(".")[0]


@cache
def ready(entry: Any, load: Callable[[], None]) -> None:
    """Has `entry`, a function of numba's, compiled, or read from the cache, by `load`, which calls it with arguments of its types."""
    folder = cache_folder()
    if folder is None:
        load()
        return
    with locked(folder / "lock"):
        before, SETTINGS.CACHE_DIR = SETTINGS.CACHE_DIR, str(folder)
        try:
            entry.enable_caching()
        finally:
            SETTINGS.CACHE_DIR = before
        load()


def cache_folder() -> Path | None:
    """The folder for this code on this machine; None where none can be made."""
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = home / "rankfall" / "kernels" / digest()
        folder.mkdir(parents=True, exist_ok=True)
        return folder if os.access(folder, os.W_OK) else None
    except (OSError, RuntimeError):
        return None


def digest() -> str:
    made_by = numba.__version__, llvmlite.__version__, platform.python_version(), LANES, ROWS, COLUMNS
    found = hashlib.sha256(repr((made_by, SETTINGS.CPU_NAME, SETTINGS.CPU_FEATURES)).encode())
    for name in sorted(name for name in sys.modules if name.startswith(f"{PACKAGE}.")):
        found.update(f"\n{name}\n".encode() + text_of(name))
    return found.hexdigest()[:24]


def text_of(name: str) -> bytes:
    """The source that a module was made of; a loader that runs exactly what was hashed knows it."""
    module: Any = sys.modules[name]
    loader = module.__spec__.loader
    content: bytes | None = getattr(loader, "content", None)
    return content if content is not None else loader.get_data(module.__file__)  # type: ignore[no-any-return]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        with suppress(OSError):  # a file system without locks: the same may be compiled twice, and either is kept
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
