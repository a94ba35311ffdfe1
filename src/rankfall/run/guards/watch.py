"""Proof that keys are complete: every file that a computation reads is observed, and must be in its key.

Python tells an audit hook of every file that it opens and every module that it loads, by whatever means. While a job runs, each is
judged by two questions. Where does it lie? What `outside.py` lists is not ours to hash. Who reads it? Of the frames of the stack, the
innermost that is neither Python's nor an installed package's. If its file is in the key, or is no file of this package at all, it
takes part in the computation. The rest of this package is what surrounds it (the store, the progress bar) and may read anything.

A file that is not in the key ends the job, even where a component catches the error; and one that is must have, when it is
opened, the content that the plan has hashed.

What else a component could learn that no key knows, and Python tells of, `calls.py` lists: it is refused. A hook sees nothing that
compiled code opens by itself (safetensors, Arrow), not the time, and not whether a file exists or what a folder lists.
It cannot be removed; while no job runs it returns at once.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from rankfall.errors import describe_error
from rankfall.run.guards.calls import CALLS, find_asking_frame, line
from rankfall.run.guards.declared import MACHINERY, READER, Code, Declared, Unproved, is_ours, short_path, source_of
from rankfall.run.guards.outside import Outside
from rankfall.run.guards.process import check_unaltered, components_of
from rankfall.run.keys.loader import LOADED, Text


class Watch:
    """The hook, one for a process."""

    def __init__(self) -> None:
        self.declared: Declared | None = None  # by what is being computed; None while no job runs
        self.outside = Outside(())
        self.reading: dict[str, set[tuple[str, bool]]] = {}  # source -> what was read, or loaded, while it was imported
        self.busy = threading.local()  # what is done here opens files too

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        declared = self.declared
        if declared is None or getattr(self.busy, "now", False) or (event not in EVENTS and event not in CALLS):
            return
        try:
            self.look(declared, event, arguments)
        except Unproved:
            raise
        except Exception as error:  # of the watch itself; a component might catch it, and go on unwatched
            declared.forbid(
                f"the watch over what is read failed at {event} {arguments[:1]}: {describe_error(error)}; nothing is kept"
            )

    def look(self, declared: Declared, event: str, arguments: tuple[Any, ...]) -> None:
        if event in CALLS and (frame := find_asking_frame(declared, event, arguments, sys._getframe(2))) is not None:
            declared.forbid(line(_place(frame, declared), event, arguments))
        if event not in EVENTS:
            return
        path = EVENTS[event](arguments)
        if path is None or (event == LOADED and path in declared.loaded):
            return
        self.busy.now = True
        try:
            path = os.path.abspath(path)
            if (source_of(path) if path.endswith(".pyc") else path) not in self.outside:
                self.judge(declared, os.path.realpath(path), arguments[2] if event == "open" else None)
        finally:
            self.busy.now = False

    def judge(self, declared: Declared, path: str, flags: int | None) -> None:
        """`flags` says how a file is opened; None for a module that is loaded."""
        reader, through = _innermost(declared)
        if reader is None:
            return
        if flags is not None:
            exists = os.path.isfile(path)
            if flags & os.O_CREAT and (flags & os.O_TRUNC or not exists):
                declared.written.add(path)
            if path in declared.written or not exists or flags & os.O_ACCMODE == os.O_WRONLY:
                return
            if path.endswith(".py") and "linecache.py" in through:  # for the text of a traceback
                return
        for source in _importing(reader, declared):
            self.reading.setdefault(source, set()).add((path, flags is None))
        as_code = flags is None or any(file.startswith(("<frozen importlib", "<frozen runpy")) for file in through)
        wrong = declared.check(path, loaded=flags is None)
        if wrong is None and not as_code:
            wrong = declared.check_text(path)
        if wrong is not None:
            declared.refuse(_place(reader, declared), path, wrong)
        if flags is None:
            declared.loaded.add(path)

    def enter(self, declared: Declared) -> None:
        """From here on only this may be read. What its modules read when they were imported, be it earlier, is checked too."""
        self.declared = declared
        for source in declared.sources.keys() & self.reading.keys():
            for path, loaded in sorted(self.reading[source]):
                if (wrong := declared.check(path, loaded)) is not None:
                    declared.refuse(short_path(source), path, wrong)


WATCH: list[Watch] = []  # the hook, once there is one: it stays for as long as the process


@contextmanager
def job(code: Code, texts: Mapping[str, Text]) -> Iterator[None]:
    """While a job runs, components may read only what is in `code`. This package may read anything, except inside `numerics`."""
    if not WATCH:
        WATCH.append(Watch())
        sys.addaudithook(WATCH[0])
    declared = Declared(code, texts, around=True)
    WATCH[0].outside = Outside(map(os.path.dirname, declared.sources))
    WATCH[0].reading = {}
    with _restrict_reads(WATCH[0], declared):
        yield


@contextmanager
def numerics(*codes: Code) -> Iterator[None]:
    """Around the computation of numbers: within a job, only what is in these may be read. Without one nothing is watched."""
    before = WATCH[0].declared if WATCH else None
    if before is None:
        yield
        return
    code = union(codes)
    foreign = components_of(code)
    with (
        _restrict_reads(WATCH[0], before.within(code)),
        check_unaltered(lambda: " or ".join(foreign) or "a component of this package", names=bool(foreign)),
    ):
        yield


@contextmanager
def hand_over() -> Iterator[None]:
    """Inside `numerics`, while this package reads something for the computation, such as a table: nothing is watched."""
    before = WATCH[0].declared if WATCH else None
    if before is None:
        yield
        return
    WATCH[0].declared = None
    try:
        yield
    finally:
        WATCH[0].declared = before


@contextmanager
def _restrict_reads(watch: Watch, declared: Declared) -> Iterator[None]:
    """Only `declared` may be read. A forbidden read ends the job even where the work caught its error, or raised another."""
    before = watch.declared
    try:
        watch.enter(declared)
        yield
    except Exception:
        declared.verify()
        raise
    else:
        declared.verify()
    finally:
        watch.declared = before


def verify() -> None:
    """Raise if what runs now has read what its key does not hold."""
    if WATCH and WATCH[0].declared is not None:
        WATCH[0].declared.verify()


def union(codes: Iterable[Code]) -> dict[str, str]:
    """Several codes as one."""
    found: dict[str, str] = {}
    for code in codes:
        found.update(code)
    return found


def _opened_file(arguments: tuple[Any, ...]) -> str | None:
    """A file by its name, not by the number of an open one."""
    return os.fsdecode(arguments[0]) if isinstance(arguments[0], str | bytes | os.PathLike) else None


def _library(arguments: tuple[Any, ...]) -> str | None:
    """A library by its path; one that is named without is the system's."""
    name = arguments[0]
    return name if isinstance(name, str) and os.sep in name else None


def _module(arguments: tuple[Any, ...]) -> str | None:
    """The file of a module, where it is known."""
    return arguments[1]  # type: ignore[no-any-return]


# "import" has a file where the module is compiled code; others are opened, or come from our loader.
EVENTS: dict[str, Callable[[tuple[Any, ...]], str | None]] = {
    "open": _opened_file,
    "import": _module,
    LOADED: _module,
    "ctypes.dlopen": _library,
}


def _innermost(declared: Declared) -> tuple[FrameType | None, set[str]]:
    """The frame that reads, if it is part of the computation, and the files of Python and of packages through which it does."""
    through: set[str] = set()
    frame: FrameType | None = sys._getframe(4)
    while frame is not None:
        file = frame.f_code.co_filename
        kind = declared.reader(file)
        if kind == READER:
            return frame, through
        if kind == MACHINERY:
            break
        through.add(os.path.basename(file))
        frame = frame.f_back
    return None, through


def _place(reader: FrameType, declared: Declared) -> str:
    """The line that reads. For a helper also the component that called it: the outermost file of the key that is not of this package."""
    last, frame = reader.f_code.co_filename, reader.f_back
    while frame is not None and declared.reader(file := frame.f_code.co_filename) != MACHINERY and not is_ours(file):
        last = file if os.path.realpath(file) in declared.sources else last
        frame = frame.f_back
    place = f"{short_path(reader.f_code.co_filename)}, line {reader.f_lineno}"
    return place if last == reader.f_code.co_filename else f"{place} (for {short_path(last)})"


def _importing(frame: FrameType | None, declared: Declared) -> Iterator[str]:
    """Files of the modules that are being imported at this moment."""
    while frame is not None and (kind := declared.reader(frame.f_code.co_filename)) != MACHINERY:
        if frame.f_code.co_name == "<module>" and kind == READER:
            yield os.path.realpath(frame.f_code.co_filename)
        frame = frame.f_back
