"""Refuse reads of data that no key covers: after an edit of such a file, the old results would still be used.

Python's audit hook sees each file that Python opens; `readers.py` adds libraries that open files in C++. A read is checked if a file of the
user is on the stack, with only files of Python, installed packages and this package above it. The runner may read anything, and so may a
library during its import. A refused read ends the job, even if the component catches the error.
"""

import functools
import os
import site
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import source_from_cache
from pathlib import Path
from types import FrameType
from typing import Any

import rankfall
from rankfall.disk import cache_home, engine_home
from rankfall.errors import RankfallError
from rankfall.modules import find_module
from rankfall.run.guards.readers import READ, wrap_readers
from rankfall.run.keys import fingerprint
from rankfall.run.keys.files import places
from rankfall.run.keys.fingerprint import INSTALLED, find_source

Code = Mapping[str, str]  # file -> digest, as a key holds it
PACKAGE = os.path.realpath(Path(rankfall.__file__).parent) + os.sep
FOUND = filter(None, map(find_module, fingerprint.OURS))
PACKAGES = tuple(os.path.realpath(path) + os.sep for spec in FOUND for path in spec.submodule_search_locations or ())
RUNNER = (f"{PACKAGE}run{os.sep}", f"{PACKAGE}commands{os.sep}", f"{PACKAGE}cli.py")
LIBRARIES = (*map(sysconfig.get_path, ("stdlib", "platstdlib")), *site.getsitepackages(), site.getusersitepackages())
PYTHON = tuple(os.path.realpath(path) + os.sep for path in LIBRARIES)
SYSTEM = ("/proc/", "/sys/", "/dev/")
BESIDE = ("__pycache__", ".dist-info", ".egg-info")  # folders beside sources
USERS, INSTALLED_FILE, OURS, RUNNERS = range(4)  # owners of source files


class Unproved(RankfallError):
    """The key does not describe the computation, so its results cannot be stored. This is not an error of a cell."""


class NotInKey(Unproved):
    """A component read a file that no key covers."""


class Watch:
    """The audit hook of a process. It cannot be removed, and returns at once while nothing is computed."""

    def __init__(self) -> None:
        self.allowed: frozenset[str] | None = None  # paths that may be read; None while nothing is computed
        self.caches: tuple[str, ...] = ()  # folders of results and caches
        self.written: set[str] = set()  # files that a component has created
        self.refused: list[str] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.allowed is None or event not in ("open", READ):
            return
        path, reader = arguments[0], find_user_frame(sys._getframe(1 + (event == READ)))  # frame of the caller of open
        if reader is not None and isinstance(path, str | bytes | os.PathLike):
            flags = arguments[2] if event == "open" else os.O_RDONLY
            self.judge(reader, os.path.realpath(os.fsdecode(path)), flags)

    def judge(self, reader: FrameType, path: str, flags: int) -> None:
        exists = os.path.exists(path)
        if flags & os.O_CREAT and (flags & os.O_TRUNC or not exists):
            self.written.add(path)
        if exists and path not in self.written and flags & os.O_ACCMODE != os.O_WRONLY and not self.is_known(path):
            self.refused.append(describe_read(reader, path))
            raise NotInKey(self.refused[-1])

    def is_known(self, path: str) -> bool:
        """Return whether a path is in the key, or belongs to Python, the system, an installed package, this package or its engine."""
        if path.endswith(".pyc"):
            with suppress(ValueError):
                path = source_from_cache(path)
        folders = path.split(os.sep)
        if path.startswith((*SYSTEM, *PYTHON, *PACKAGES, *self.caches)) or INSTALLED.intersection(folders):
            return True
        if any(folder.endswith(BESIDE) for folder in folders):
            return True
        for place in (Path(path), *Path(path).parents):
            if str(place) in (self.allowed or ()):  # the digest of a folder leaves out hidden files
                return not any(part.startswith(".") for part in Path(path).relative_to(place).parts)
        return False


@functools.cache
def install_watch() -> Watch:
    watch = Watch()
    sys.addaudithook(watch)
    return watch


@contextmanager
def watch_job(code: Code, results: Path | None = None) -> Iterator[None]:
    """During a job, let users' components read only the files in `code`, and the files of this package in `results`."""
    watch = install_watch()
    watch.caches, watch.written, watch.refused, watch.allowed = cache_folders(results), set(), [], frozenset()
    try:
        with restrict_reads(code):
            yield
    finally:
        watch.allowed = None


@contextmanager
def restrict_reads(code: Code) -> Iterator[None]:
    """Within a job, let users' components read only the files in `code`, except those of this package, which are not watched."""
    watch = install_watch()
    before = watch.allowed
    if before is None:  # no job
        yield
        return
    wrap_readers(code)
    names = (name for name in code if name.partition("/")[0] not in fingerprint.OURS)
    watch.allowed = frozenset(path for name in names for path in paths_of(name))
    try:
        yield
    except Exception:
        verify()
        raise
    else:
        verify()
    finally:
        watch.allowed = before


def verify() -> None:
    """Raise if this job has refused a read."""
    watch = install_watch()
    if watch.allowed is not None and watch.refused:
        raise NotInKey(watch.refused[0])


def paths_of(name: str) -> tuple[str, ...]:
    """Return the real paths of the file or folder that a key names."""
    source = find_source(name)
    return tuple(os.path.realpath(place) for place in ([source] if source else places(name)))


@functools.lru_cache(maxsize=4096)
def owner_of(file: str) -> int:
    """Return the owner of a source file, which is named as in a frame."""
    path = os.path.realpath(file)
    if path.startswith(PACKAGES):
        return RUNNERS if path.startswith(RUNNER) else OURS
    installed = file[:1] in ("<", "") or path.startswith(PYTHON) or INSTALLED.intersection(Path(path).parts)
    return INSTALLED_FILE if installed else USERS


def find_user_frame(frame: FrameType | None) -> FrameType | None:
    """Search outward, up to the runner, for a frame of a user's file. Return None during the import of a library."""
    while frame is not None:
        file = frame.f_code.co_filename
        owner = owner_of(file)
        if owner == USERS:
            return frame
        if owner == RUNNERS or (owner == INSTALLED_FILE and frame.f_code.co_name == "<module>" and file[:1] != "<"):
            return None
        frame = frame.f_back
    return None


def cache_folders(results: Path | None) -> tuple[str, ...]:
    """Return the folders of results and of the caches of this package, its engine, compilers and matplotlib."""
    home, own = os.path.expanduser("~"), cache_home()
    inductor = os.path.join(tempfile.gettempdir(), f"torchinductor_{os.environ.get('USER', 'root')}")
    folders = (
        *(str(folder) for folder in (results, own, engine_home()) if folder),
        *(os.environ.get("TRITON_CACHE_DIR", f"{home}/.triton"), os.environ.get("TORCHINDUCTOR_CACHE_DIR", inductor)),
        os.environ.get("MPLCONFIGDIR", f"{home}/.cache/matplotlib"),
    )
    return tuple(os.path.realpath(folder) + os.sep for folder in folders)


def describe_read(reader: FrameType, path: str) -> str:
    """Return the error message, with the fix in its second line."""
    fix = (
        f'make its path an option of the component, or write DATA = ["{os.path.basename(path)}"] at the top of its file'
    )
    verb = "reads"
    if path.endswith((".py", ".pyc")):
        verb = "runs"
        fix = (
            "import it by its full name in a statement at the top; a measure lists components that it builds in BUILDS"
        )
    where = f"{short_path(reader.f_code.co_filename)}, line {reader.f_lineno}"
    return f"{where}: {verb} {short_path(path)}, which no key knows, so nothing is kept\n  fix: {fix}"


def short_path(path: str) -> str:
    """Return a path in the working directory as relative to it, and any other path unchanged."""
    return os.path.relpath(path) if os.path.realpath(path).startswith(os.getcwd() + os.sep) else path
