"""Guard a job: components read only files that a key knows, and code, files and precision flags are unchanged when results are stored.

After an edit of a file that no key knows, a run would still use old results. Python's audit hook sees each file that Python opens.
Functions of libraries that open files in C++ are wrapped, so that they raise audit events too. A read is refused if a user's file is on the
stack, with only files of Python, installed packages and this package above it. The runner may read anything, and so may a library during
its import. A refused read ends the job, even if the component catches the error.
"""

import functools
import importlib
import os
import site
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import source_from_cache
from inspect import isclass
from pathlib import Path
from types import FrameType
from typing import Any

import rankfall
from rankfall.disk import cache_home, engine_home
from rankfall.errors import RankfallError
from rankfall.modules import PREFIX, distributions_of, find_module, version_of
from rankfall.run.keys import COLUMNS, DESCRIPTIONS, digests, places, table_digests
from rankfall.sources.fingerprint import INSTALLED, OURS, digest_of, find_source, module_of
from rankfall.trial.flags import changed_flags, read_flags, restore_flags

Code = Mapping[str, str]  # file -> digest, as a key holds it
READ = "rankfall.read"  # audit event of a wrapped function; its argument is a path
READERS = {  # module -> functions and classes that take a path and open it in C++
    "pyarrow": ("memory_map", "OSFile", "input_stream"),
    "pyarrow.parquet": ("read_table", "ParquetFile", "ParquetDataset"),
    "pyarrow.dataset": ("dataset",),
    "pyarrow.feather": ("read_table", "read_feather"),
    "pyarrow.csv": ("read_csv", "open_csv"),
    "h5py": ("File",),
    "safetensors": ("safe_open",),
    "safetensors.torch": ("load_file", "safe_open"),
    "safetensors.numpy": ("load_file", "safe_open"),
    "cv2": ("imread", "VideoCapture"),
    "torch": ("from_file",),
}
PACKAGE = os.path.realpath(Path(rankfall.__file__).parent) + os.sep
SPECS = filter(None, map(find_module, OURS))
PACKAGES = tuple(os.path.realpath(path) + os.sep for spec in SPECS for path in spec.submodule_search_locations or ())
RUNNER = (f"{PACKAGE}run{os.sep}", f"{PACKAGE}commands{os.sep}", f"{PACKAGE}cli.py")
LIBRARIES = (*map(sysconfig.get_path, ("stdlib", "platstdlib")), *site.getsitepackages(), site.getusersitepackages())
PYTHON = tuple(os.path.realpath(path) + os.sep for path in LIBRARIES)
SYSTEM = ("/proc/", "/sys/", "/dev/")
BESIDE = ("__pycache__", ".dist-info", ".egg-info")  # folders beside sources


class Unproved(RankfallError):
    """The key does not describe the computation, so its results cannot be stored. This is not an error of a cell.

    A component read a file that no key covers or changed a precision flag, or a file in a key changed after the run was planned."""


class Watch:
    """The audit hook of a process. It cannot be removed, and returns at once while no job runs."""

    def __init__(self) -> None:
        self.code: Code = {}  # everything in the keys of the job's results
        self.allowed: frozenset[str] | None = None  # paths that may be read; None while no job runs
        self.caches: tuple[str, ...] = ()  # folders of results and caches
        self.written = set[str]()  # files that a component created
        self.refused = list[str]()
        self.flags = dict[str, Any]()  # precision flags when the job began
        self.wrapped = set[str]()  # modules of READERS; they stay wrapped

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.allowed is None or event not in ("open", READ):
            return
        path, reader = arguments[0], find_user_frame(sys._getframe(1 + (event == READ)))  # frame of the caller of open
        if reader is None or not isinstance(path, str | bytes | os.PathLike):
            return
        path, flags = os.path.realpath(os.fsdecode(path)), arguments[2] if event == "open" else os.O_RDONLY
        exists = os.path.exists(path)
        if flags & os.O_CREAT and (flags & os.O_TRUNC or not exists):
            self.written.add(path)
        if exists and path not in self.written and flags & os.O_ACCMODE != os.O_WRONLY and not self.is_known(path):
            self.refused.append(describe_read(reader, path))
            raise Unproved(self.refused[-1])

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
        for parent in (Path(path), *Path(path).parents):
            if str(parent) in (self.allowed or ()):  # the digest of a folder omits hidden files
                return not any(part.startswith(".") for part in Path(path).relative_to(parent).parts)
        return False

    def wrap_readers(self, code: Code) -> None:
        """Wrap the readers of all imported libraries.

        Import libraries in the key first, so that no component can keep a reference to a function that is not wrapped."""
        for module in READERS.keys() - self.wrapped:
            if any(f"{PREFIX}{name}" in code for name in distributions_of(module.partition(".")[0])):
                with suppress(ImportError):
                    importlib.import_module(module)
            if module in sys.modules:
                self.wrapped.add(module)
                for name in READERS[module]:
                    wrap_reader(sys.modules[module], name)


@functools.cache
def install_watch() -> Watch:
    """Return the audit hook of this process, installed at the first call."""
    watch = Watch()
    sys.addaudithook(watch)
    return watch


@contextmanager
def guard_job(codes: Iterable[Code], results: Path | None = None) -> Iterator[None]:
    """Guard a job whose keys name the code and files in `codes`. Users' components may also read this package's files in `results`.

    At the end, precision flags get the values that they had before."""
    watch = install_watch()
    watch.code = {name: digest for code in codes for name, digest in code.items()}
    watch.caches, watch.written, watch.refused, watch.flags = cache_folders(results), set(), [], read_flags()
    watch.allowed = frozenset()
    try:
        with restrict_reads(watch.code):
            yield
    finally:
        watch.allowed = None
        restore_flags(watch.flags)


@contextmanager
def restrict_reads(code: Code) -> Iterator[None]:
    """Let users' components read only the files in `code` within a job. Reads by this package are not watched."""
    watch = install_watch()
    before = watch.allowed
    if before is None:  # no job
        yield
        return
    watch.wrap_readers(code)
    names = (name for name in code if name.partition("/")[0] not in OURS)
    files = ([source] if (source := find_source(name)) else places(name) for name in names)
    watch.allowed = frozenset(os.path.realpath(path) for paths in files for path in paths)
    try:
        yield
    finally:
        watch.allowed = before
        check_reads()


def check_reads() -> None:
    """Raise if a read was refused in the running job."""
    watch = install_watch()
    if watch.allowed is not None and watch.refused:
        raise Unproved(watch.refused[0])


def check_files() -> None:
    """Raise if a read was refused in the running job, or if a file or an installed version in its keys changed since the plan."""
    watch = install_watch()
    if watch.allowed is not None:
        check_reads()
        check_unchanged(watch.code)


def check_job() -> None:
    """Raise if results of the running job may not be stored: as `check_files`, or because a component changed a precision flag."""
    watch = install_watch()
    users = sorted(name for name in watch.code if name.endswith(".py") and name.partition("/")[0] not in OURS)
    check_files()
    if watch.allowed is not None and users and (change := changed_flags(watch.flags)):
        raise Unproved(f"{' or '.join(users)} {change[0]}, so nothing is kept\n  fix: {change[1]}")


def check_unchanged(code: Code) -> None:
    """Raise if a file or installed version in `code` has another digest now."""
    changed = sorted(name for name, planned in code.items() if planned not in current_digests(name))
    if changed:
        raise Unproved(
            f"{', '.join(changed)} changed since this run was planned; nothing was stored under a wrong key, and earlier results are kept: "
            f"run again"
        )


def current_digests(name: str) -> Iterator[str]:
    """Yield the current digests of the code, file or distribution with this name. Yield nothing if it does not exist."""
    if name.startswith(PREFIX):
        yield version_of(name.removeprefix(PREFIX))
        return
    if name.startswith((COLUMNS, DESCRIPTIONS)):
        yield table_digests(name.rpartition(" ")[2]).get(name, "")
        return
    source = find_source(name)
    with suppress(OSError, RankfallError):  # deleted, or no valid Python during an edit
        if source is not None:
            yield digest_of(module_of(name), name, source.read_bytes())
    yield from digests(name)


@functools.lru_cache(maxsize=4096)
def owner_of(file: str) -> str:
    """Return the owner of a source file, named as in a frame: runner, package, library or user."""
    path = os.path.realpath(file)
    if path.startswith(PACKAGES):
        return "runner" if path.startswith(RUNNER) else "package"
    installed = file[:1] in ("<", "") or path.startswith(PYTHON) or INSTALLED.intersection(Path(path).parts)
    return "library" if installed else "user"


def find_user_frame(frame: FrameType | None) -> FrameType | None:
    """Search outward, up to the runner, for a frame of a user's file. Return None during the import of a library."""
    while frame is not None:
        file = frame.f_code.co_filename
        owner = owner_of(file)
        if owner == "user":
            return frame
        if owner == "runner" or (owner == "library" and frame.f_code.co_name == "<module>" and file[:1] != "<"):
            return None
        frame = frame.f_back
    return None


def cache_folders(results: Path | None) -> tuple[str, ...]:
    """Return the folders of results and of the caches of this package, its engine, compilers and matplotlib."""
    home = os.path.expanduser("~")
    inductor = os.path.join(tempfile.gettempdir(), f"torchinductor_{os.environ.get('USER', 'root')}")
    folders = (
        *(str(folder) for folder in (results, cache_home(), engine_home()) if folder),
        *(os.environ.get("TRITON_CACHE_DIR", f"{home}/.triton"), os.environ.get("TORCHINDUCTOR_CACHE_DIR", inductor)),
        os.environ.get("MPLCONFIGDIR", f"{home}/.cache/matplotlib"),
    )
    return tuple(os.path.realpath(folder) + os.sep for folder in folders)


def describe_read(reader: FrameType, path: str) -> str:
    """Return the error message, with the fix in its second line."""
    verb = "reads"
    fix = (
        f'make its path an option of the component, or write DATA = ["{os.path.basename(path)}"] at the top of its file'
    )
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


def wrap_reader(holder: Any, name: str) -> None:
    """Wrap a function, or the `__init__` of a class. A class of C++ is replaced by a wrapper function."""
    reader = getattr(holder, name, None)
    if isclass(reader) and "__init__" in vars(reader):
        with suppress(TypeError):  # a class of C++
            reader.__init__ = announce_paths(reader.__init__)  # type: ignore[misc, method-assign]
            return
    if reader is not None:
        setattr(holder, name, announce_paths(reader))


def announce_paths(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that raises an audit event for each path among its arguments, and then calls `call`."""

    @functools.wraps(call)
    def announce(*args: Any, **kwargs: Any) -> Any:
        for value in (*args, *kwargs.values()):
            for path in value if isinstance(value, list | tuple) else (value,):
                if isinstance(path, str | bytes | os.PathLike):
                    sys.audit(READ, path)
        return call(*args, **kwargs)

    return announce
