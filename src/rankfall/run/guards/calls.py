"""What a component must not do, since no key could tell what comes of it: start programs, open databases and connections, load libraries of
the system, read or change environment variables.

Python tells an audit hook of each, and by the stack the hook knows who asks. What Python does when it imports a library,
and what compilers of numerical packages do for code that they are given, is no component's doing.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

from rankfall.run.guards import environment
from rankfall.run.guards.declared import READER, Declared, is_ours
from rankfall.run.guards.environment import VARIABLE
from rankfall.run.guards.outside import is_installed
from rankfall.run.keys.loader import INSTALLED

# Packages that compile what they are given, or count processors: they start programs by themselves.
COMPILERS = frozenset({"torch", "triton", "numba", "llvmlite", "joblib", "threadpoolctl"})
MAPPING = ("<frozen os>", "<frozen _collections_abc>", os.__file__)  # through which variables are read
NOBODY, SOME, PACKAGES, LIBRARIES = range(4)  # who may do it for a component: compilers, any package, Python's own too


@dataclass(frozen=True)
class Forbidden:
    told: str
    remedy: str
    others: int = NOBODY


PROGRAM = Forbidden(
    "starts another program",
    "run it before, and make what it gives an option of the component, or a file that an option or DATA names",
    SOME,
)
FORK = Forbidden("starts another process", "compute in this one: a run has as many processes as it has jobs", SOME)
CONNECTION = Forbidden(
    "asks another machine", "fetch it before, and name the file by an option of the component, or in DATA at its top"
)
DATABASE = Forbidden(
    "opens a database", "write what is read from it to a file, and name that by an option of the component, or in DATA"
)
LIBRARY = Forbidden(
    "loads a library of the system",
    "use an installed package, or name the library's file by an option of the component, or in DATA at its top",
    PACKAGES,
)
READ = Forbidden("reads an environment variable", "make it an option of the component", LIBRARIES)
CHANGED = Forbidden(
    "changes an environment variable", "other components have the same environment: leave it as it is", PACKAGES
)
CALLS: Mapping[str, Forbidden] = {
    **dict.fromkeys(("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn"), PROGRAM),
    **dict.fromkeys(("os.startfile", "os.startfile/2"), PROGRAM),
    **dict.fromkeys(("os.fork", "os.forkpty"), FORK),
    **dict.fromkeys(("socket.connect", "socket.sendto", "socket.sendmsg", "socket.bind"), CONNECTION),
    **dict.fromkeys(("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"), CONNECTION),
    "sqlite3.connect": DATABASE,
    "ctypes.dlopen": LIBRARY,
    VARIABLE: READ,
    **dict.fromkeys(("os.putenv", "os.unsetenv"), CHANGED),
}


def find_asking_frame(
    declared: Declared, event: str, arguments: tuple[Any, ...], frame: FrameType | None
) -> FrameType | None:
    """Where a component asks for it; None if it is not a component that does. `frame` is where the event was raised."""
    call = CALLS[event]
    if call is LIBRARY and _is_of_a_package(arguments[0], declared):
        return None
    while frame is not None:
        file = frame.f_code.co_filename
        if file == environment.__file__:  # stands between who reads and what is read
            frame = frame.f_back
            continue
        if declared.reader(file) == READER:
            return None if is_ours(file) else frame
        package = _package_of(file)
        if package is None and not _is_python(file):  # what surrounds the computation
            return None
        if frame.f_code.co_name == "<module>" and not file.startswith("<"):  # it is being imported
            return None
        if package is not None and (call.others >= PACKAGES or (call.others == SOME and package in COMPILERS)):
            return None
        if package is None and call.others == LIBRARIES and file not in MAPPING:
            return None
        frame = frame.f_back
    return None


def line(place: str, event: str, arguments: tuple[Any, ...]) -> str:
    call = CALLS[event]
    what = arguments[0] if arguments and isinstance(arguments[0], str | bytes | os.PathLike) else None
    name = f", {os.fsdecode(what)}," if what else f" ({event})"
    return f"{place}: {call.told}{name} and no key knows what comes of it, so nothing is kept; {call.remedy}"


def _is_of_a_package(name: Any, declared: Declared) -> bool:
    """Whether a library is an installed package's, or a file of the key, which is judged as one."""
    if not isinstance(name, str) or os.sep not in name:
        return False
    path = os.path.realpath(name)
    return is_installed(path) or path in declared.files


def _is_python(file: str) -> bool:
    return file.startswith("<") or (is_installed(os.path.realpath(file)) and _package_of(file) is None)


def _package_of(file: str) -> str | None:
    """The installed package that a source file is of."""
    parts = file.split(os.sep)
    for folder in INSTALLED:
        if folder in parts:
            rest = parts[parts.index(folder) + 1 :]
            return rest[0] if rest else None
    return None
