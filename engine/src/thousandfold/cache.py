"""Machine code of the kernels, compiled once per machine and cached for all processes in the user's cache folder.

The key of numba's cache is only the path and the file of the function that Python calls. So this cache names its folder by the imported
text of all compiled modules and by the version of the compiler. All checkouts and environments with this text use the same machine code,
and processes that need it wait for the first one.

A process that compiles would run other code than one that reads the cache: it also holds each function as compiled by itself, which may sum
in another order, and its calls use that version first. So a forked process compiles, and all others read the cache.
"""

import fcntl
import hashlib
import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TextIO

import llvmlite
import numba
from numba.core import caching

from thousandfold.disk import cache_home
from thousandfold.errors import NoKernel, say_if_slow
from thousandfold.kernels.inner import SETTINGS
from thousandfold.kernels.vector import LANES

LOCK = "lock"
SEAL = "seal"  # file with the digests of all cached files
# Settings of numba that change the machine code, and with it the last digits of sums.
STEERING = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "ENABLE_AVX", "DISABLE_INTEL_SVML", "DISABLE_JIT")


@cache
def ready(entry: Any, arguments: Callable[[], tuple[Any, ...]], sources: tuple[str, ...]) -> None:
    """Load `entry`, a numba function, from the cache by a call with `arguments`. If the cache lacks it, a forked process compiles it first.
    `sources`: prefixes of the modules from which it is compiled."""
    folder = cache_folder(sources) or Path(tempfile.mkdtemp(prefix="thousandfold-kernels-"))
    with lock_folder(folder):
        entry._cache = cache_in(folder, entry.py_func)
        values = arguments()
        if not is_whole(folder):
            clear(folder)
        if not is_kept(entry, values):
            with say_if_slow(
                "compiling the machine for this processor, once for each version of its code: about a minute"
            ):
                compile_in_fork(entry, values)
            seal(folder)
        entry(*values)
    if entry.stats.cache_misses:
        raise NoKernel(f"compiled code cannot be kept in {folder}: make room there")


def cache_in(folder: Path, function: Any) -> Any:
    """Return a numba cache of a function that is in this folder, independent of the path of its source."""

    class Place(caching._CacheLocator):  # type: ignore[misc]
        def get_cache_path(self) -> str:
            return str(folder)

        def get_source_stamp(self) -> str:
            return folder.name  # digest of all text

        def get_disambiguator(self) -> str:
            return "kept"

        @classmethod
        def from_function(cls, function: Any, file: str) -> "Place":
            return cls()

    class Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]
        def __init__(self, function: Any) -> None:
            self._locator_classes = list[Any]([Place])
            super().__init__(function)

    class Kept(caching.FunctionCache):  # type: ignore[misc]
        _impl_class = Implementation

    return Kept(function)


def is_whole(folder: Path) -> bool:
    """Return whether all cached files are intact. numba would run a changed file, and end every job on a truncated one."""
    try:
        return (folder / SEAL).read_text() == contents(folder)
    except (OSError, ValueError):
        return False


def seal(folder: Path) -> None:
    with suppress(OSError):  # on a full disk the kernels are compiled again next time
        (folder / SEAL).write_text(contents(folder))


def clear(folder: Path) -> None:
    for path in kept_files(folder):
        path.unlink(missing_ok=True)


def contents(folder: Path) -> str:
    files = ((path, hashlib.sha256(path.read_bytes()).hexdigest()) for path in kept_files(folder))
    return "".join(f"{path.relative_to(folder)} {checksum}\n" for path, checksum in files)


def kept_files(folder: Path) -> list[Path]:
    """Return the files that numba has written."""
    return sorted(path for path in folder.rglob("*.nb*") if path.is_file())


def is_kept(entry: Any, values: tuple[Any, ...]) -> bool:
    """Return whether the cache has machine code for these types of arguments, this processor and this source."""
    types = tuple(entry.typeof_pyval(value) for value in values)
    return entry._cache.load_overload(types, entry.targetctx) is not None


def compile_in_fork(entry: Any, values: tuple[Any, ...]) -> None:
    """Call `entry` in a fork of this process, which has the same text of all modules."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            entry(*values)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if status:
        raise NoKernel(
            f"the kernels do not compile here (status {os.waitstatus_to_exitcode(status)}, see above): reinstall numba"
        )


def cache_folder(sources: tuple[str, ...]) -> Path | None:
    """Return the cache folder for this code on this machine, or None if it cannot be created."""
    home = cache_home()
    if home is None:
        return None
    folder = home / "kernels" / digest(sources)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return folder if os.access(folder, os.W_OK) else None
    except OSError:
        return None


def digest(sources: tuple[str, ...]) -> str:
    versions = numba.__version__, llvmlite.__version__, platform.python_version(), LANES
    settings = [getattr(SETTINGS, name, None) for name in (*STEERING, "CPU_NAME", "CPU_FEATURES")]
    hasher = hashlib.sha256(repr((versions, settings)).encode())
    for name in sorted(name for name in sys.modules if name.startswith(sources)):
        hasher.update(f"\n{name}\n".encode() + text_of(name))
    return hasher.hexdigest()[:24]


def text_of(name: str) -> bytes:
    """Return the source of an imported module."""
    return Path(str(sys.modules[name].__file__)).read_bytes()


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Create the folder and lock it for this process. The owner of the lock may remove a folder that was unused for long, so
    a process that has waited for the lock creates the folder again."""
    file = None
    while file is None:
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            file = open_lock(folder / LOCK)
    with file:
        yield


def open_lock(path: Path) -> TextIO | None:
    """Open the lock's file and lock it. Return None if another file has replaced it, and raise FileNotFoundError if it was removed."""
    file = path.open("a")
    try:
        with suppress(OSError):  # a file system without locks: two processes may compile the same code
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.path.samestat(os.fstat(file.fileno()), path.stat()):
            os.utime(path)  # time of the last use
            return file
    except BaseException:
        file.close()
        raise
    file.close()
    return None
