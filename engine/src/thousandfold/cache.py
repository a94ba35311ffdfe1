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
import pickle
import platform
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TextIO

import llvmlite
import numba
from numba.core import serialize
from numba.core.compiler import CompileResult

from thousandfold.disk import cache_home, keep, read_kept
from thousandfold.errors import NoKernel, say_if_slow
from thousandfold.kernels.inner import SETTINGS
from thousandfold.kernels.vector import LANES

LOCK = "lock"
# Settings of numba that change the machine code, and with it the last digits of sums.
STEERING = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "ENABLE_AVX", "DISABLE_INTEL_SVML", "DISABLE_JIT")


class KeptCode:
    """A cache of numba in a folder, with one file for each list of types and each processor."""

    def __init__(self, folder: Path) -> None:
        self.cache_path = folder

    def path(self, types: tuple[Any, ...], codegen: Any) -> Path:
        return self.cache_path / f"{hashlib.sha256(repr((types, codegen.magic_tuple())).encode()).hexdigest()[:24]}.nbc"

    def load_overload(self, types: tuple[Any, ...], context: Any) -> Any:
        context.refresh()
        content = read_kept(self.path(types, context.codegen()))
        return None if content is None else CompileResult._rebuild(context, *pickle.loads(content))

    def save_overload(self, types: tuple[Any, ...], compiled: Any) -> None:
        keep(self.path(types, compiled.codegen), serialize.dumps(compiled._reduce()))


@cache
def ready(entry: Any, arguments: Callable[[], tuple[Any, ...]], sources: tuple[str, ...]) -> None:
    """Load `entry`, a numba function, from the cache by a call with `arguments`. If the cache lacks it, a forked process compiles it first.
    `sources`: prefixes of the modules from which it is compiled."""
    folder = cache_folder(sources) or Path(tempfile.mkdtemp(prefix="thousandfold-kernels-"))
    with ExitStack() as stack:
        with say_if_slow("another process compiles the machine; this one waits for it, about a minute"):
            stack.enter_context(lock_folder(folder))
        values = arguments()
        if not is_kept(entry, values, folder):
            with say_if_slow(
                "compiling the machine for this processor, once for each version of its code: about a minute"
            ):
                compile_in_fork(entry, values)
        entry(*values)
    if entry.stats.cache_misses:
        raise NoKernel(f"compiled code cannot be kept in {folder}: make room there")


def is_kept(entry: Any, values: tuple[Any, ...], folder: Path) -> bool:
    """Return whether the folder has machine code for these types of arguments and this processor. `entry` then loads it from there."""
    entry._cache = KeptCode(folder)
    return entry._cache.load_overload(tuple(map(entry.typeof_pyval, values)), entry.targetctx) is not None


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
