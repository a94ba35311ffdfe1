"""The files in the key of one computation: its code, and what the code may read."""

import importlib.util
import marshal
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import rankfall
from rankfall.errors import RankfallError
from rankfall.run.guards.outside import is_installed
from rankfall.run.keys.contents import files_in
from rankfall.run.keys.files import content, places
from rankfall.run.keys.fingerprint import WHOLE, digest_like
from rankfall.run.keys.loader import Text, module_of

Code = Mapping[str, str]  # file -> digest, as a key holds it
PACKAGE = os.path.realpath(Path(rankfall.__file__).parent)
# No part of any key, and called from within computations: whoever calls them reads.
PASSED_OVER = tuple(
    os.path.join(PACKAGE, f) for f in ("components.py", "errors.py", "run/keys/loader.py", "run/guards/watch.py")
)
READER, MACHINERY, NEITHER = range(3)


class Unproved(RankfallError):
    """The key does not describe what was computed. No cell is at fault, but nothing can be stored under the key."""


class NotInKey(Unproved):
    """A file was read that is not in the key, or differs from the one in the key."""


@dataclass
class Declared:
    """`texts` are the modules that the plan has read, whichever key they are in."""

    code: Code
    texts: Mapping[str, Text]
    around: bool = False  # outside `numerics`: this package prepares or keeps something, and may read anything
    readers: dict[str, int] = field(default_factory=dict)  # file of a frame -> what it is to the computation
    loaded: set[str] = field(default_factory=set)  # modules of which it is known that they may be
    written: set[str] = field(default_factory=set)  # made by the computation itself
    found: list[str] = field(default_factory=list)  # what is wrong with what was read
    stamps: dict[str, dict[str, tuple[int, ...]]] = field(default_factory=dict)  # folder -> its files when last checked
    real: dict[str, str] = field(default_factory=dict)  # file -> its path without links, looked up once in a job

    def within(self, code: Code) -> "Declared":
        """The same, for one computation of the job."""
        return Declared(code, self.texts, real=self.real)

    def place(self, file: str) -> str:
        if file not in self.real:
            self.real[file] = os.path.realpath(file)
        return self.real[file]

    @cached_property
    def sources(self) -> dict[str, tuple[str, Text]]:
        """Path -> name and text of the modules in the key."""
        found = ((name, self.texts.get(module_of(name))) for name in self.code if name.endswith(".py"))
        return {self.place(text.file): (name, text) for name, text in found if text is not None}

    @cached_property
    def files(self) -> dict[str, str]:
        """Path -> name of the other files and folders in the key."""
        others = (name for name in self.code if not name.endswith(".py") or module_of(name) not in self.texts)
        return {os.path.realpath(place): name for name in others for place in places(name)}

    def reader(self, file: str) -> int:
        """What the code in a file is to the computation; `file` as a frame names it."""
        if file not in self.readers:
            self.readers[file] = NEITHER if file[:1] in ("<", "") else self._reader(self.place(file))
        return self.readers[file]

    def _reader(self, file: str) -> int:
        ours = file.startswith(PACKAGE + os.sep)
        if self.around and ours and file not in PASSED_OVER:
            return MACHINERY
        if file in self.sources:
            return READER
        if file in PASSED_OVER or is_installed(file):
            return NEITHER
        return MACHINERY if ours else READER

    def check(self, path: str, loaded: bool = False) -> str | None:
        """What is wrong with reading a file: None if nothing, "" if it is not in the key. A module that is `loaded` by our loader
        is made of the text that the plan has read, whatever the file says now."""
        if path in self.written or path in PASSED_OVER:
            return None
        if path.endswith(".pyc"):
            return self._check_compiled(path)
        if path in self.sources:
            name, text = self.sources[path]
            return None if loaded or self._still(path, name, text) else f"{name} was edited: run again"
        for place in (path, *map(str, Path(path).parents)):
            if place in self.files:
                return self._find_change(place, path)
        return ""

    def check_text(self, path: str) -> str | None:
        """What is wrong with reading the source of a module as text. Its comments and docstrings, which are in no key, would be data."""
        name = self.sources[path][0] if path in self.sources and path not in self.written else None
        if name is None or self.code[name].startswith(WHOLE) or is_ours(path):
            return None
        return "comments, docstrings and layout of a module are in no key: keep the text in a file of its own and name it in DATA"

    def _still(self, path: str, name: str, text: Text) -> bool:
        """Whether the source file of a module is still the same, comments aside."""
        try:
            now = Path(path).read_bytes()
            return now == text.content or digest_like(self.code[name], text.module, name, now) == self.code[name]
        except (OSError, RankfallError):
            return False

    def _find_change(self, place: str, path: str) -> str | None:
        """Like `check`, for a file or a folder of the key. A folder of many files is hashed once, not for each that is read."""
        edited = f"{self.files[place]} was edited: run again"
        if path not in self.stamps.get(place, {}) or self.stamps[place][path] != _stamp(path):
            inside = [os.path.realpath(file) for _, file in files_in(Path(place))] if os.path.isdir(place) else [place]
            self.stamps[place] = {file: _stamp(file) for file in inside}  # before the look at what is in them
            if content(Path(place)) != self.code[self.files[place]]:
                self.stamps[place] = {}
                return edited
        return None if path in self.stamps[place] else ""  # hidden files do not count, so they must not be read

    def _check_compiled(self, path: str) -> str | None:
        """What is wrong with loading a compiled module: it must have been compiled from the text that is in the key."""
        source = source_of(path)
        if source not in self.sources:
            return self.check(source) if source in self.files else ""
        _, text = self.sources[source]
        try:
            there = marshal.loads(Path(path).read_bytes()[16:])
            same = there == compile(text.content, text.file, "exec", dont_inherit=True)
        except (OSError, ValueError, EOFError, TypeError):
            same = False
        return None if same else "it was compiled from another text: remove it, or import the module by its name"

    def refuse(self, reader: str, path: str, wrong: str) -> None:
        self.found.append(_describe_read(reader, path, wrong))
        raise NotInKey(self.found[-1])

    def forbid(self, line: str) -> None:
        """Refuse what a component does that is not reading a file, in this line."""
        self.found.append(line)
        raise NotInKey(line)

    def verify(self) -> None:
        """Raise if anything was wrong, even if a component caught the error."""
        if self.found:
            raise NotInKey(self.found[0])


def is_ours(file: str) -> bool:
    """Whether a source file is of this package."""
    return os.path.realpath(file).startswith(PACKAGE + os.sep)


def source_of(path: str) -> str:
    """The source file of a compiled one."""
    try:
        return os.path.realpath(importlib.util.source_from_cache(path))
    except ValueError:
        return path


def short_path(path: str) -> str:
    """The path as seen from the working directory, if it lies in it."""
    return os.path.relpath(path) if os.path.realpath(path).startswith(os.getcwd() + os.sep) else path


def _stamp(path: str) -> tuple[int, ...]:
    """What tells one state of a file from another: the time of the last change of any kind cannot be set back."""
    stat = os.stat(path)
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino


def _describe_read(reader: str, path: str, wrong: str) -> str:
    file = short_path(path)
    if wrong:
        return f"{reader}: reads {file}, but {wrong}"
    if path.endswith((".py", ".pyc", ".so")):
        return (
            f"{reader}: runs {file}, which is not in the key, so nothing is kept; "
            f"import it by its full name, with an import statement at the top of the file; a measure names what it builds networks of "
            f"in BUILDS, and what an item of its rows is made of in made_of"
        )
    return (
        f"{reader}: reads {file}, which is not in the key, so nothing is kept; make its path the value of an option of "
        f'the component, or name it at the top of the component\'s file: DATA = ["{os.path.basename(path)}"]'
    )
