"""The process is the same after a component as before it.

`torch.set_float32_matmul_precision` in a component's file, or a function of torch that it replaces, changes the numbers of other
components, whose keys lack that file. So a job looks at the process around all that a component does: around the execution of its file,
around its trial, and around the computation of numbers. What differs then is put back, and ends the job with the line that names the file.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from rankfall.run.guards.declared import PACKAGE, Unproved, short_path
from rankfall.run.guards.names import Names, undo
from rankfall.run.guards.settings import put_back, read_settings
from rankfall.run.keys import loader

NAMES: list[Names] = []  # of the job that runs, if one does


class Altered(Unproved):
    """A component has changed the process for all others."""


@contextmanager
def same_process() -> Iterator[None]:
    """Around a job: within, files of components are executed and numbers are computed in a process that stays as it is."""
    NAMES.append(Names())
    loader.AROUND.append(watch_execution)
    try:
        yield
    finally:
        loader.AROUND.remove(watch_execution)
        NAMES.pop()


@contextmanager
def check_unaltered(who: Callable[[], str], names: bool = True) -> Iterator[None]:
    """Raise `Altered` if the process is another afterwards; `who` says whose work it was. Without a job nothing is looked at. Without
    `names` only settings are, in a hundredth of the time: where none but this package's own code is at work."""
    if not NAMES:
        yield
        return
    _check_lasting()
    before = read_settings()
    try:
        yield
    except Exception as error:
        _compare(before, who, names, error)
        raise
    _compare(before, who, names, None)


@contextmanager
def watch_execution(module: ModuleType, file: str) -> Iterator[None]:
    """Around the execution of a module's text. Modules of this package are trusted."""
    if module.__name__.partition(".")[0] == loader.OWN:
        yield
        return
    who = f"{short_path(file)}, when it is imported,"
    try:
        with check_unaltered(lambda: who):
            yield
    except Altered:
        sys.modules.pop(module.__name__, None)  # so that who imports it again is told again
        raise


def components_of(files: Iterable[str]) -> list[str]:
    """The source files of a computation that are not this package's own."""
    return sorted({file for file in files if file.endswith(".py") and not file.startswith(loader.OWN + "/")})


def _compare(before: dict[str, Any], who: Callable[[], str], of_names: bool, cause: Exception | None) -> None:
    names = NAMES[-1]
    wrong = []
    now = read_settings()
    for name, value in before.items():
        if name in now and now[name] != value:
            wrong.append(
                f"{who()} changes {name} from {value!r} to {now[name]!r}, which other components compute with; undo it with try and finally"
            )
            put_back(name, value)
    for name, holder, value, other in list(names.find_replaced()) if of_names else ():
        wrong.append(
            f"{_origin(other) or who()} replaces {name}, which other components use; write a function of another name, and call that"
        )
        undo(name, holder, value)
    if wrong:
        line = f"{wrong[0]}. Their keys do not hold this file, so nothing is kept"
        now = read_settings()
        if any(now.get(name) != value for name, value in before.items()) or any(names.find_replaced()):
            names.lasting = line
        raise Altered(line) from cause
    _check_lasting()
    if of_names:
        names.look()


def _check_lasting() -> None:
    """Raise if an earlier change of the process could not be undone: nothing more is computed in it."""
    if NAMES[-1].lasting:
        raise Altered(NAMES[-1].lasting)


def _origin(value: Any) -> str:
    """The file that a function is written in, if that is nobody's library."""
    code = getattr(getattr(value, "__func__", value), "__code__", None)
    file = getattr(code, "co_filename", "")
    mine = file and not file.startswith((PACKAGE, "<")) and not loader.INSTALLED.intersection(file.split("/"))
    return short_path(file) if mine else ""
