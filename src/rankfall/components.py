"""Components: each part of the benchmark is a file, located by its name and loaded only when a cell names it.

`nets/normalisers/l2.py` is the normaliser `l2`: it defines the function `l2`, or the class `L2Normaliser` or `L2`. A quantity is a folder
of its study, or one file. The folder `rank/law/` holds `measure.py`, `shown.py`, which declares the table and what is shown of it, and
`figure.py` (`quantity_files.py`). A component outside the package is named by dotted path, `mylab.attn:Sharp`, and a quantity by its
module, `mylab.entropy`. There is no registry: adding a component is adding a file.

Only `load` imports a component into this process. `describe` returns its options and facts, which another process computes by importing it
and the user's cache folder keeps (`descriptions.py`), so planning ten thousand cells never starts torch. Options are the keyword-only
parameters of the function (or of the class's `__init__`). Facts are the names in capitals of its module, such as `INPUTS = "tokens"`
(`run/config/options.py` lists those that are read), and what calling a user's component shows.
"""

import functools
import importlib
import inspect
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rankfall.descriptions import (
    ComponentRequest,
    Description,
    Location,
    NotDefined,
    describe_component,
    look_again,
    prepare,
    sources,
)
from rankfall.design import Architecture, Component, Task, Training, components_of, field_declarations, with_default
from rankfall.errors import RankfallError, nearest, suggest
from rankfall.modules import find_module, local_folders, root_of
from rankfall.quantity_files import (
    CLAIMS,
    EXPERIMENT,
    OF_A_STUDY,
    OF_AN_EXPERIMENT,
    OWN_FILES,
    STUDIES,
    camel,
    defines,
    locate_in_quantity,
    locate_in_study,
    quantities_with,
)

if TYPE_CHECKING:
    from rankfall.sources.fingerprint import Sources

AUTO = "auto"  # selects the component that fits the task, for kinds that depend on its inputs and targets
AUTO_KINDS = with_default(Architecture, AUTO) | with_default(Training, AUTO)
KINDS: Mapping[str, tuple[str, ...]] = {  # kind -> patterns of its files, with * for the name
    **{kind: (f"{about['folder']}/*.py",) for kind, about in field_declarations(Task, Architecture, Training).items()},
    **dict.fromkeys(OF_A_STUDY, ()),  # those without a file of their kind are found by `quantities_with`
    **{kind: tuple(f"{study}/*/{file}" for study in STUDIES) for kind, file in OWN_FILES.items()},
    "measure": (*(f"{study}/*/measure.py" for study in STUDIES), f"{CLAIMS}/*/{EXPERIMENT}"),
    "claim": (f"{CLAIMS}/*/rule.py",),
}


def names(kind: str) -> list[str]:
    """Return the names of a kind's components, sorted; `auto` is included for kinds that support it."""
    known = {AUTO} if kind in AUTO_KINDS else set()
    for pattern in KINDS[kind]:
        prefix, _, suffix = pattern.partition("*")
        folder = root_of(pattern) / prefix
        known |= {str(path.relative_to(folder)).removesuffix(suffix) for path in folder.glob(f"*{suffix}")}
    if kind in OF_A_STUDY:
        known |= quantities_with(kind)
    return sorted(name for name in known if not name.startswith("_"))


def locate(kind: str, name: str) -> Location | None:
    """Locate a component's file without importing it; return None for `auto`, which has no file."""
    if ":" in name:
        return _locate_external(name)
    if kind in OF_A_STUDY:
        return locate_in_quantity(kind, name) if "." in name else locate_in_study(kind, name)
    location = _own_location(kind, name)
    if not name.startswith("_") and os.path.isfile(location.file):  # not cached: the file may vanish
        return location
    if name in names(kind):
        return None
    raise RankfallError(f"unknown {kind} {name!r}")


def describe(kind: str, name: str) -> Description | None:
    """Return what importing a component shows; None for `auto`."""
    location = locate(kind, name)
    if location is None:
        return None
    stat = location.file.stat()
    return _describe(kind, name, location, stat.st_mtime_ns, stat.st_size)


def prepare_descriptions(named: Iterable[tuple[str, str]]) -> "Sources":
    """Describe components (kind, name) in one process if they are not known. Components that do not exist are left out. Return the sources,
    which are read anew."""
    requests = []
    for kind, name in named:
        with suppress(RankfallError):
            if (location := locate(kind, name)) is not None:
                requests.append(ComponentRequest(kind, name, location))
    look_again()
    prepare(requests, _all_shipped())
    return sources()


def describe_columns(table: str) -> Description | None:
    """Describe the declaration of a table; None for a user's quantity that has none, whose columns are those of its rows."""
    try:
        return describe("table", table)
    except NotDefined:
        locate("measure", table)
        return None


def facts_of(kind: str, name: str) -> Mapping[str, Any]:
    """Return the facts of a component; empty for `auto` and for an empty name."""
    description = describe(kind, name) if name else None
    return description.facts if description else {}


def load(kind: str, name: str) -> Any:
    """Import a component and return its function or class. No other code imports components."""
    location = locate(kind, name)
    if location is None:
        raise RankfallError(f"{kind} {name!r} stands for no component, so there is nothing to load")
    return import_component(location)[1]


def import_component(location: Location) -> tuple[ModuleType, Any]:
    """Import the module of a component, and return it with the component."""
    if not location.module.startswith("rankfall."):
        # For components of users and what they import; last, so that a file lying around cannot shadow an installed package.
        sys.path += [folder for folder in local_folders() if folder not in sys.path]
    before = sys.dont_write_bytecode
    # Python trusts a compiled file whose source has the recorded size and time, and an archive or `touch -r` can give these to an edited
    # source. So no compiled file is written.
    sys.dont_write_bytecode = True
    try:
        module = importlib.import_module(location.module)
    finally:
        sys.dont_write_bytecode = before
    for attribute in location.attributes:
        if hasattr(module, attribute):
            return module, getattr(module, attribute)
    public = [name for name in vars(module) if not name.startswith("_")]
    expected = " or ".join(map(repr, dict.fromkeys(location.attributes)))
    hint = suggest(location.attributes[0], public)
    raise NotDefined(f"{location.file} defines no function or class {expected}{hint}")


def module_of(kind: str, component: Component) -> str:
    """Return the module of a component that is not `auto`."""
    location = locate(kind, component.name)
    assert location is not None, f"{kind} {component.name} was left open"
    return location.module


def parts_of(task: Task, architecture: Architecture, training: Training) -> list[tuple[str, Component]]:
    """Return (kind, component) for every component of a cell. An untrained cell has an objective for evaluation, but no optimiser."""
    parts = [("task", task.task), *components_of(architecture), ("objective", training.objective)]
    if training.epochs > 0:
        parts += [("optimizer", training.optimizer), ("schedule", training.schedule)]
    return parts


def bound(kind: str, component: Any) -> Any:
    """Load a component and bind its options: return an instance of a class, or a partial function."""
    target = load(kind, component.name)
    return target(**component.options) if inspect.isclass(target) else functools.partial(target, **component.options)


def declares(kind: str, module: str) -> bool:
    """Return whether a user's quantity declares a kind."""
    try:
        location = locate(kind, module)
    except RankfallError:
        return False
    return location is not None and (
        location.file.name == OWN_FILES.get(kind) or defines(location.file, OF_A_STUDY[kind])
    )


@functools.lru_cache(maxsize=4096)
def _own_location(kind: str, name: str) -> Location:
    """Return the location of a part of a cell in this package, whose kind has one pattern. It may not exist."""
    file = KINDS[kind][0].replace("*", name)
    module = f"rankfall.{file.removesuffix('.py').replace('/', '.')}"
    return Location(module, Path(__file__).parent / file, (name, camel(name) + camel(kind), camel(name)))


def _locate_external(name: str) -> Location:
    """Locate a component that is named by dotted path."""
    module, _, attribute = name.partition(":")
    if not attribute.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise RankfallError(f"{name!r} is not a dotted path: write package.module:Attribute")
    spec = find_module(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        folder, _, last = module.rpartition(".")
        beside = [path.stem for path in Path(*folder.split(".")).glob("*.py")] if folder else []
        near = nearest(last, beside)
        hint = f"; did you mean '{folder}.{near}:{attribute}'?" if near else ""
        raise RankfallError(
            f"{name!r}: no Python module {module!r} is installed or lies in the working directory{hint}"
        )
    return Location(module, Path(spec.origin), (attribute,))


@functools.lru_cache(maxsize=4096)
def _describe(kind: str, name: str, location: Location, mtime: int, size: int) -> Description:
    """Describe a component. Time and size of its file are part of the cache's key, so a long-lived process sees an edit."""
    description = describe_component(ComponentRequest(kind, name, location), _all_shipped() if location.shipped else ())
    defaults: dict[str, Any] = {}
    if location.file.name == EXPERIMENT:
        defaults = OF_AN_EXPERIMENT
    elif kind in ("measure", "figure") and ":" not in name:
        defaults = {"TABLE": name} if kind == "measure" else {"TABLES": [name]}
    return replace(description, facts={**defaults, **description.facts})


def _all_shipped() -> Iterator[ComponentRequest]:
    """Yield all components of this package."""
    for kind in KINDS:
        for name in names(kind):
            if (location := locate(kind, name)) is not None:
                yield ComponentRequest(kind, name, location)
