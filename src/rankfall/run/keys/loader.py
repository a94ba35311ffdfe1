"""Modules are run from exactly the source text that their keys were computed from.

Python runs a compiled file if the modification time (in seconds) and the size noted in it match the source. An edit of the
same size that keeps the time (`touch -r`, an archive, a checkout within a second) would run the old code under the key of the new. So
the modules that keys hold are compiled from their text (all of this package: 0.15 s), and each remembers the text it was made from.

A job goes further and freezes the texts: whatever is imported later, its source is what the plan has read and hashed, though the file
may have been edited since, and edited back, or deleted. A module that was imported before the plan is compared with it.

This module imports the standard library only: other modules of this package would be loaded before the loader is installed.
"""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

INSTALLED = frozenset({"site-packages", "dist-packages", "lib-dynload"})
OWN = __name__.partition(".")[0]
LOADED = "rankfall.load"  # an audit event: module, file
# What a job has around the execution of a module's text: the last of them is given the module and its file.
AROUND: "list[Callable[[ModuleType, str], AbstractContextManager[None]]]" = []


@dataclass(frozen=True)
class Text:
    """The source of a module as it was read, and where."""

    module: str
    file: str
    is_package: bool
    content: bytes


class TextLoader(SourceFileLoader):
    """Compiles the source text, never reads or writes compiled files, and keeps the text."""

    def __init__(self, module: str, file: str, content: bytes | None = None) -> None:
        super().__init__(module, file)
        self.content = content

    def exec_module(self, module: ModuleType) -> None:
        with AROUND[-1](module, self.path) if AROUND else nullcontext():
            super().exec_module(module)

    def get_code(self, fullname: str) -> CodeType:
        sys.audit(LOADED, fullname, self.path)
        if self.content is None:
            self.content = self.get_data(self.path)
        return self.source_to_code(self.content, self.path)


class Finder:
    """Finds modules as Python does, and has those compiled from text that are neither Python's own nor installed."""

    def __init__(self) -> None:
        self.local: dict[str, bool] = {}  # top-level name -> whether it is compiled from text
        self.frozen: Mapping[str, Text] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in self.frozen:
            return _spec_of(self.frozen[fullname])
        top = fullname.partition(".")[0]
        inside = fullname != top
        if top in sys.stdlib_module_names or (inside and self.local.get(top) is False):
            return None
        spec = self._others(fullname, path, target)
        if spec is None:
            return None
        if not inside or top not in self.local:
            self.local[top] = top == OWN or is_local(top, spec)
        if self.local[top] and type(spec.loader) is SourceFileLoader:
            spec.loader = TextLoader(fullname, spec.loader.path)
        return spec

    def _others(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find: Any = getattr(finder, "find_spec", None)
            if finder is not self and find is not None and (spec := find(fullname, path, target)) is not None:
                return spec  # type: ignore[no-any-return]
        return None


def is_local(top: str, spec: ModuleSpec) -> bool:
    """Whether a top-level package or module is local: neither of the standard library nor installed."""
    places = [*(spec.submodule_search_locations or ()), spec.origin or ""]
    return top not in sys.stdlib_module_names and bool(places) and not INSTALLED.intersection(Path(places[0]).parts)


def install() -> Finder:
    """From here on, what is imported is compiled from its text. Called first of all by a program; calling it again changes nothing."""
    found = _find_finder()
    if found is not None:
        return found
    finder = Finder()
    sys.meta_path.insert(0, finder)  # type: ignore[arg-type]
    for parent in (OWN, __name__.rpartition(".")[0]):  # these were imported in order to get here
        importlib.reload(sys.modules[parent])
    return finder


@contextmanager
def frozen(texts: Mapping[str, Text]) -> Iterator[None]:
    """Inside this context, these modules are loaded from these texts, wherever they are imported."""
    finder = install()
    before = finder.frozen
    finder.frozen = texts
    try:
        yield
    finally:
        finder.frozen = before


def frozen_text(module: str) -> Text | None:
    """What a job that runs has frozen of a module; None for one that it has not, and without a job."""
    found = _find_finder()
    return found.frozen.get(module) if found is not None else None


def read_executed_text(module: str) -> bytes | None:
    """The text that a module was made of, or will be; None where that is not known, or the module is not imported."""
    loaded = sys.modules.get(module)
    if loaded is not None:
        loader = getattr(getattr(loaded, "__spec__", None), "loader", None)
        return loader.content if isinstance(loader, TextLoader) else None
    text = frozen_text(module)
    return text.content if text is not None else None


def module_of(name: str) -> str:
    """The module of a source file as keys name it."""
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _find_finder() -> Finder | None:
    return next((finder for finder in sys.meta_path if isinstance(finder, Finder)), None)


def _spec_of(text: Text) -> ModuleSpec | None:
    folders = [str(Path(text.file).parent)] if text.is_package else None
    loader = TextLoader(text.module, text.file, text.content)
    return spec_from_file_location(text.module, text.file, loader=loader, submodule_search_locations=folders)
